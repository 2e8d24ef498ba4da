"""The jobs: each its gate, its prompt, its fence and its result on one page; none knows another."""
