"""The folder that goes on PYTHONPATH; nothing but ``sitecustomize`` may be in it."""
