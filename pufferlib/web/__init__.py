"""Pages in the browser: a board of runs, a view of an environment, and games that need no server."""
