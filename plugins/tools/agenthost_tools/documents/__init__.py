"""How documents of strangers become text: run in a worker process, imported there."""
