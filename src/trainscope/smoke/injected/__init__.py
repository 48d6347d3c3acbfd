"""Records a training script from inside its process; the standard library and torch only.

Loaded as ``_trainscope.smoke.injected`` by the ``sitecustomize`` of :mod:`trainscope.smoke.hook`, so imports
are relative. Nothing here draws a random number, changes a tensor or lets an exception of its own reach the script.
"""
