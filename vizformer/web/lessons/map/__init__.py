"""The laboratories of the lesson The map, in the order of its parts."""

from vizformer.web.lessons.map import drawing, gru, path_length

PARTS = (drawing.lab, path_length.lab, gru.lab)
