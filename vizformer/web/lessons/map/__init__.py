"""The laboratories of the lesson The map, in the order of its parts."""

from vizformer.web.lessons.map import drawing, gru, layer_cost, path_length

PARTS = (drawing.lab, path_length.lab, layer_cost.lab, gru.lab)
