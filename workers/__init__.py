"""The processes that do the work: subscribe, the pipeline's stages, and later the GPU worker."""
