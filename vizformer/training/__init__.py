"""What models are trained with, and the trainings that can be run again and again.

data        corpus, pairs, batches, vocabulary; tasks and examples, which need no data
the loop    schedule, loss, loop, speed
bundled     recipe, with translation, stories and cloze, one model each; commands, evaluation, text_evaluation and the
            cards; lengths, the tiny models of the lesson Positions
live        live trains a tiny model, worker is its process, runs its folder, training_queue which of them run
lessons     gru and repeater, small networks that are no Transformers (`recipes` has how they were trained)
"""
