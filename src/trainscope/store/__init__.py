"""A recorded run on disk: Arrow files that read back whatever happened to the process that wrote them."""
