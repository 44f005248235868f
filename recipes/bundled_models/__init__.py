"""How the bundled models were trained and measured: `python -m recipes.bundled_models.train`, `.evaluate`.

zh_en, stories, cloze    a model each, of `recipe`
lengths                  the six tiny models of the lesson Positions
train, evaluate          the commands, with zh_en_measures, text_measures, attention_measures and the cards
"""
