"""Where blocks are worked on: threads, processes, joblib's backends, Dask, Ray; one small interface, one module each."""
