"""What we say about runs: the report document, the gate's verdict, and one renderer an output.

:func:`trainscope.report.pipeline.analyze` goes from paths to a document; every output is a view of it.
"""
