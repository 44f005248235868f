"""The trainings that the pages run, and the trained models that lessons read; `recipes` has the trainings of the assets.

steps       batches, loss, schedule, speed; tasks and examples, which need no data
live        live trains a tiny model, worker is its process, runs its folder, training_queue which of them run
lessons     lengths, and gru and repeater, small networks that are no Transformers
"""
