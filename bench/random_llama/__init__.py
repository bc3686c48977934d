"""A Llama whose weights are drawn by lot and whose text can be checked all the same."""
