"""Pull requests, job summaries and the history branch: the only room that knows GitHub."""
