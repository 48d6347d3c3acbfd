"""What the parts of every document are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = (
    Annotated[int, Field(strict=True)]
    | Annotated[float, Field(allow_inf_nan=False, strict=True)]
    | Literal["nan", "inf", "-inf"]
)
"""JSON has no NaN and no infinity; training logs do."""
Scalar = str | bool | Number | None
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """Base of every part: unknown fields are ignored, so that an old tool reads a newer document."""

    model_config = ConfigDict(extra="ignore", frozen=True)
