"""How the bundled models were trained and measured: `python -m recipes.bundled_models.train`, `.evaluate`.

zh_en                    what zh-en and small translators of lessons learn; the training is in recipes.translator
stories, cloze           a model each, of `recipe`
lengths                  the six tiny models of the lesson Positions
train, evaluate          the commands, with zh_en_measures, text_measures, attention_measures and the cards
"""
