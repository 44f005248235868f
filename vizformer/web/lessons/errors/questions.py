"""The questions of the lesson Find the error."""

from vizformer.web.lessons.errors import after, cache, count, dropout, embedding, join, scale, total, waves
from vizformer.web.widgets.questions import Registry

QUESTIONS: Registry = {
    "dropout": dropout.dropout_question,
    "scale": lambda subject: scale.scale_question(),
    "waves": lambda subject: waves.waves_question(),
    "weight": lambda subject: total.weight_question(),
    "total": lambda subject: total.total_question(),
    "count": lambda subject: count.count_question(),
    "after": lambda subject: after.after_question(),
    "cache": lambda subject: cache.cache_question(),
    "embedding": lambda subject: embedding.embedding_question(),
    "join": lambda subject: join.join_question(),
}
