"""What the pages train and what they read of what was trained; `recipes` has the trainings that made assets.

steps       batches, loss, schedule, speed; tasks and examples, which need no data
live        live trains a tiny model, worker is its process, runs its folder, training_queue which of them run
lessons     lengths, and gru and repeater, small networks that are no Transformers
"""
