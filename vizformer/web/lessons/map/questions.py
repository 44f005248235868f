"""The questions of the lesson The map."""

from vizformer.web.lessons.map import drawing, gru, layer_cost, path_length
from vizformer.web.widgets.questions import Registry

QUESTIONS: Registry = {
    "share": drawing.share_question,
    "path": path_length.path_question,
    "cost": layer_cost.cost_question,
    "felt": gru.felt_question,
}
