"""The exercises of the lesson Find the error, in the order of its parts."""

from vizformer.web.lessons.errors.exercises import after, cache, count, dropout, embedding, join, scale, total, waves

PARTS = (dropout, scale, waves, total, count, after, cache, embedding, join)
