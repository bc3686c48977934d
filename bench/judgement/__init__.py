"""Training and judging the classifier: the labelled calls, the comparison of models, the shipped model, the figures."""
