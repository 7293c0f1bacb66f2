"""The pipeline's stages, one verb a module: each loads a batch, asks the domain to decide, and stores the answer."""
