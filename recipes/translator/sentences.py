"""The kinds of sentences: each a function that makes one, in both languages."""

from collections.abc import Callable
from dataclasses import replace

from recipes.translator.english import EnglishVerb, article, be, conjugate, number, with_s
from recipes.translator.lexicon import Adjective, Noun, Verb
from recipes.translator.phrases import (
    MINE,
    PRONOUNS,
    Action,
    Clause,
    Phrase,
    Speaker,
    chinese_number,
    with_capital,
)

Pair = tuple[str, str]
Kind = Callable[[Speaker], Pair]
KINDS: dict[str, tuple[Kind, float]] = {}
OUTDOORS = frozenset(("散步", "跑步", "踢足球", "打网球", "野餐", "钓鱼", "爬山", "放", "骑自行车"))
AT_HOME = frozenset(("看电视", "看书", "做饭", "打扫房间", "听音乐", "上网", "休息", "玩游戏", "写作业", "看电影"))
FOUND_IN = (
    ("wild", "zoo"),
    ("farm", "farm"),
    ("vehicle", "street outside station"),
    ("furniture", "inside home_like kitchen"),
    ("plant", "outside nature"),
    ("land_animal", "outside nature"),
    ("bird", "outside nature"),
)
"""Where there is what, by its kinds."""

HOURS = (
    (("起床", "吃早饭", "上班", "上学", "刷牙"), (6, 9)),
    (("吃午饭",), (11, 12)),
    (("吃晚饭", "下班", "回家"), (5, 8)),
    (("睡觉", "洗澡"), (8, 11)),
)
"""From when to when one does what."""

LIES = "fruit small dish book container toy stationery pet"


def kind(weight: float) -> Callable[[Kind], Kind]:
    """Lists the function as a kind of sentence, drawn in proportion to its weight."""

    def listed(function: Kind) -> Kind:
        KINDS[function.__name__] = (function, weight)
        return function

    return listed


def clause(
    s: Speaker,
    aspect: str,
    subject: Phrase | None = None,
    *,
    simple: bool = False,
    negative: bool = False,
    forms: str = "",
) -> Clause:
    """A clause with a verb that its aspect allows, and with time, place and companion where they fit."""
    subject = subject or s.somebody()
    activity = s.chance(0.4)
    stop = {
        "past": {"state", "bad", "feel", "keeping", "wearing" if simple else "state"},
        "present": {"once", "state", "wearing", "keeping", "giving", "bad", "feel"},
        "progressive": {"once", "state", "timed", "bad", "wearing", "keeping", "giving", "brief"},
        "perfect": {"state", "daily", "timed", "bad", "wearing", "once", "keeping", "feel"},
        "will": {"once", "state", "bad", "feel", "wearing", "keeping", "harm"},
    }[aspect]
    pool = s.lexicon.activities if activity else s.lexicon.verbs
    if activity and aspect == "perfect":
        pool = [verb for verb in pool if verb.flags & {"skill", "sport", "outdoors"}]
    verb = s.one([verb for verb in pool if verb.flags.isdisjoint(stop)])
    usual = {
        "past": "one one many some this own",
        "present": "all",
        "perfect": "this",
        "progressive": "one this own some",
    }
    forms = forms or ("all this this own" if negative and aspect != "present" else usual.get(aspect, "one this own"))
    found = Clause(subject, s.act(verb, forms, subject), aspect, negative=negative, plain=s.chance(0.5))
    time = {"past": "past", "will": "future", "present": "habit"}.get(aspect)
    if time and not simple and s.chance(0.75 if aspect != "past" else 0.6):
        if aspect == "present" and s.chance(0.5) and not negative and "timed" not in verb.flags:
            found = found.but(often=often(s))
        else:
            found = found.but(time=soon(s, time) if verb.flags & {"daily", "timed"} else when(s, time))
    elif aspect == "present" and not negative:
        found = found.but(time=("每天", "every day")) if "timed" in verb.flags else found.but(often=often(s))
    if not simple:
        place = s.place_for(verb) if s.chance(0.4) else None
        if place and aspect != "perfect":
            found = found.but(place=(place.where, place.en_where))
        elif s.chance(0.12) and not verb.flags & {"timed", "bad", "feel"} and "people" not in verb.objects:
            found = found.but(companion=company(s, subject))
    return found


def often(s: Speaker) -> Pair:
    options = [(t.zh, t.en) for t in s.lexicon.times if "often" in t.kinds]
    return s.one([*options, ("从来不", "never")])


def when(s: Speaker, kinds: str) -> Pair:
    time = s.one([t for t in s.lexicon.times if kinds in t.kinds])
    return time.zh, time.en


def company(s: Speaker, subject: Phrase) -> Pair:
    other = s.other_than(subject)
    return f"和{other.zh}一起", f"with {other.object}"


def soon(s: Speaker, kinds: str) -> Pair:
    """A time for what one does every day: yesterday, not last month."""
    if kinds == "habit":
        return when(s, kinds)
    past_times = (("昨天", "yesterday"), ("今天早上", "this morning"), ("昨天晚上", "last night"))
    future_times = (
        ("明天", "tomorrow"),
        ("今天晚上", "tonight"),
        ("明天早上", "tomorrow morning"),
    )
    return s.one(past_times if kinds == "past" else future_times)


def told(found: Clause) -> Pair:
    if found.time[0] and found.time[0] not in ("早上", "晚上") and len(found.subject.zh) % 3 == 1:
        moved = found.but(time=("", "")).chinese()
        if found.aspect != "will" and not found.place[0]:
            return f"{found.time[0]}{moved}。", f"{found.english()}."
    return f"{found.chinese()}。", f"{found.english()}."


@kind(9)
def past(s: Speaker) -> Pair:
    return told(clause(s, "past"))


@kind(5)
def habit(s: Speaker) -> Pair:
    return told(clause(s, "present"))


@kind(5)
def now(s: Speaker) -> Pair:
    return told(clause(s, "progressive"))


@kind(5)
def to_come(s: Speaker) -> Pair:
    found = clause(s, "will")
    found = found.but(time=found.time if found.time[0] else soon(s, "future"))
    if s.chance(0.35):
        person = be(found.subject.person)
        __, subject, rest = found.english_words(inverted=False)
        zh = found.but(modal=next(m for m in s.lexicon.modals if m.zh == "打算")).chinese()
        return f"{zh}。", f"{subject} {person} going to {rest}."
    return told(found)


@kind(2)
def ever(s: Speaker) -> Pair:
    if s.chance(0.3):
        place = s.name("city country")
        subject, negative = s.somebody(), s.chance(0.4)
        has = "has" if subject.person == "3s" else "have"
        if negative:
            return f"{subject.zh}没去过{place.zh}。", f"{subject.en} {has} never been to {place.en}."
        return f"{subject.zh}去过{place.zh}。", f"{subject.en} {has} been to {place.en}."
    return told(clause(s, "perfect", simple=True))


@kind(4)
def denied_past(s: Speaker) -> Pair:
    return told(clause(s, "past", negative=True))


@kind(3)
def denied_habit(s: Speaker) -> Pair:
    found = clause(s, "present", negative=True, simple=True)
    if found.action.verb.flags & {"timed", "daily", "harm"} or "people" in found.action.verb.objects:
        return denied_habit(s)
    return told(found.but(often=("", "")))


@kind(2)
def not_now(s: Speaker) -> Pair:
    found = clause(s, "will", negative=True, simple=s.chance(0.5)).but(time=soon(s, "future"))
    return told(found.but(companion=("", "")))


@kind(6)
def liking(s: Speaker) -> Pair:
    """State verbs: like, know, need."""
    subject = s.somebody()
    verb = s.one([v for v in s.lexicon.verbs if "state" in v.flags])
    forms = "all" if "generic" in verb.flags else "one this all many"
    negative = s.chance(0.3)
    found = Clause(subject, s.act(verb, "all this" if negative else forms, subject), "present", negative=negative)
    if s.chance(0.15) and subject.zh not in ("我", "我们"):
        return f"{found.chinese()}吗？", f"{found.asked()}?"
    if s.chance(0.15) and not negative:
        very = {"喜欢": "很喜欢", "爱": "很爱"}.get(verb.zh)
        if very:
            action = replace(found.action, verb=replace(verb, zh=very))
            return f"{found.but(action=action).chinese()}。", f"{found.english()} very much."
    return told(found)


@kind(6)
def wanting(s: Speaker) -> Pair:
    """Modal verbs: can, should, want to, started to."""
    subject = s.somebody()
    modal = s.one(s.lexicon.modals)
    negative = bool(modal.zh_denied) and s.chance(0.25)
    asked = "asks" in modal.flags or (bool(modal.zh_denied) and not negative and not modal.flags and s.chance(0.15))
    aspect = "past" if "past" in modal.flags else "present"
    if "skill" in modal.flags:
        verb = s.one([v for v in s.lexicon.activities if "skill" in v.flags])
    else:
        stop = {"once", "state", "bad", "feel", "wearing", "keeping", "giving", "timed", "daily", "harm"}
        stop -= {"timed", "daily"} if modal.follows == "" or modal.zh == "忘了" else set()
        pool = s.lexicon.activities if s.chance(0.4) or modal.follows == "ing" else s.lexicon.verbs
        verb = s.one([v for v in pool if v.flags.isdisjoint(stop)])
    found = Clause(subject, s.act(verb, "one this own", subject), aspect, negative=negative, modal=modal)
    if s.chance(0.25) and modal.zh in ("想", "要", "能", "可以", "应该", "必须", "不得不", "需要", "打算"):
        found = found.but(time=when(s, "future"))
    if asked:
        return f"{found.chinese()}吗？", f"{found.asked()}?"
    return told(found)


@kind(5)
def yes_or_no(s: Speaker) -> Pair:
    subject = s.one([p for p in PRONOUNS if p.zh[0] != "我"]) if s.chance(0.6) else s.somebody()
    if subject.zh in ("我", "我们"):
        return yes_or_no(s)
    aspect = s.one(("past", "past", "present", "progressive", "perfect", "will"))
    found = clause(s, aspect, subject, simple=s.chance(0.5))
    if aspect == "present":
        found = found.but(often=s.one((("", ""), ("经常", "often"))), time=("", ""))
    if aspect == "will":
        found = found.but(time=soon(s, "future"))
    if aspect == "perfect":
        auxiliary, who, rest = found.english_words(inverted=True)
        return f"{found.chinese(question=True)}吗？", f"{auxiliary} {who} ever {rest}?"
    return f"{found.chinese(question=True)}吗？", f"{found.asked()}?"


@kind(4)
def what(s: Speaker) -> Pair:
    subject = s.one(PRONOUNS) if s.chance(0.6) else s.somebody()
    aspect = s.one(("past", "progressive", "will", "present"))
    verbs = [
        "吃",
        "喝",
        "买",
        "看",
        "写",
        "画",
        "找",
        "做",
        "学",
        "丢",
        "收到",
        "需要",
        "想要",
        "喜欢",
        "卖",
        "准备",
        "种",
    ]
    if subject.zh.startswith("我"):
        return what(s)
    if aspect == "present" and s.chance(0.7):
        verbs = ["喜欢", "需要", "想要", "吃", "喝", "学"]
    verb = s.one([v for v in s.lexicon.verbs if v.zh in verbs and v.objects & {"food", "drink", "clothes", "book", "animal",
        "small", "cooked", "language", "fruit", "gift", "plant", "message", "mealtime"}])  # fmt: skip
    if "state" in verb.flags:
        aspect = "present"
    elif "once" in verb.flags:
        aspect = "past"
    found = Clause(subject, Action(verb, "什么", "", bare=False), aspect)
    times = {"past": "past", "will": "future"}.get(aspect)
    if times and s.chance(0.6):
        found = found.but(time=when(s, times))
    elif aspect == "present" and "state" not in verb.flags:
        found = found.but(time=s.one((("平时", ""), ("早上", "in the morning"), ("晚上", "in the evening"))))
        if found.time[1] == "":
            found = found.but(often=("", "usually"))
    elif aspect == "progressive" and (place := s.place_for(verb)) and s.chance(0.5):
        found = found.but(place=(place.where, place.en_where))
    rest = found.asked("what")
    return f"{found.chinese()}？", f"{rest}?"


@kind(2)
def doing(s: Speaker) -> Pair:
    """What is somebody doing?"""
    subject = s.somebody()
    place = s.one(s.lexicon.places)
    where = place if s.chance(0.6) else None
    draw = s.rng.random()
    if draw < 0.4:
        zh = f"在{where.where}做什么" if where else "在做什么"
        return (
            f"{subject.zh}{zh}？",
            f"What {be(subject.person)} {subject.en} doing{f' {where.en_where}' if where else ''}?",
        )
    if draw < 0.7:
        zh_time, en_time = when(s, "past")
        return f"{subject.zh}{zh_time}做了什么？", f"What did {subject.en} do {en_time}?"
    zh_time, en_time = when(s, "future")
    return f"{subject.zh}{zh_time}要做什么？", f"What will {subject.en} do {en_time}?"


@kind(3)
def who(s: Speaker) -> Pair:
    asker = Phrase("谁", "who", "3s")
    found = clause(s, s.one(("past", "progressive", "will")), asker).but(companion=("", ""))
    return f"{found.chinese()}？", f"{found.english()}?"


@kind(3)
def when_and_why(s: Speaker) -> Pair:
    subject = s.one(PRONOUNS) if s.chance(0.6) else s.somebody()
    if subject.zh.startswith("我") and s.chance(0.8):
        return when_and_why(s)
    zh, en = s.one((("什么时候", "when"), ("为什么", "why"), ("在哪里", "where"), ("怎么", "how")))
    if zh == "怎么":
        place = s.one([p for p in s.lexicon.places if p.kinds & {"public", "home"}])
        go = "回" if place.zh == "家" else "去"
        time_zh, time_en = s.one((("", ""), ("每天", "every day"), ("平时", "")))
        do = "does" if subject.person == "3s" else "do"
        usually = "usually " if time_zh == "平时" else ""
        return (
            f"{subject.zh}{time_zh}怎么{go}{place.zh}？",
            f"How {do} {subject.en} {usually}go {place.en_to}{f' {time_en}' if time_en else ''}?",
        )
    aspect = (
        s.one(("past", "will"))
        if zh == "什么时候"
        else s.one(("past", "progressive", "present"))
        if zh == "为什么"
        else "past"
    )
    negative = zh == "为什么" and aspect != "progressive" and s.chance(0.4)
    found = clause(s, aspect, subject, simple=True, negative=negative, forms="" if zh == "为什么" else "this own")
    found = found.but(often=("", ""), time=(zh, ""), place=("", ""), plain=True)
    if aspect == "past" and zh != "为什么":
        return f"{subject.zh}是{zh}{found.action.verb.zh}{found.action.zh_object}的？", f"{found.asked(en)}?"
    return f"{found.chinese()}？", f"{found.asked(en)}?"


@kind(4)
def going(s: Speaker) -> Pair:
    """Going somewhere, by what, to do what."""
    subject = s.somebody()
    city = s.chance(0.4)
    if city:
        there = s.name("city city country")
        zh_place, to = there.zh, f"to {there.en}"
    else:
        place = s.one([p for p in s.lexicon.places if p.kinds & {"public", "nature"} and p.zh not in ("街",)])
        zh_place, to = place.zh + ("边" if "waterside" in place.kinds and place.zh != "沙滩" else ""), place.en_to
    by = s.one((("", ""), ("", ""), ("坐火车", "by train"), ("坐飞机", "by plane"),
        ("坐公共汽车", "by bus"), ("开车", "by car"), ("骑自行车", "by bicycle"),
        ("坐地铁", "by subway"), ("走路", "on foot")))  # fmt: skip
    if city and by[0] in ("骑自行车", "坐地铁", "走路", "坐公共汽车"):
        by = ("坐火车", "by train")
    if not city and by[0] in ("坐飞机", "坐火车"):
        by = ("", "")
    tense = s.one(("past", "will", "present", "going"))
    verb = next(v for v in s.lexicon.activities if v.zh_object == "学" and v.zh == "上").en
    time = when(s, {"past": "past", "will": "future", "going": "future", "present": "habit"}[tense])
    if tense == "going":
        head, form = be(subject.person), "going to go"
    else:
        head, form = conjugate(verb, tense, subject.person)
    rest = " ".join(word for word in (form, to, by[1], time[1]) if word)
    zh_aspect = {"past": "去了", "will": "要去", "going": "打算去", "present": "去"}[tense]
    if by[0]:
        zh_aspect = {
            "past": f"{by[0]}去了",
            "will": f"要{by[0]}去",
            "going": f"打算{by[0]}去",
            "present": f"{by[0]}去",
        }[tense]
    if tense == "present" and city:
        time, rest = ("每年", "every year"), " ".join(w for w in (form, to, by[1], "every year") if w)
    return f"{subject.zh}{time[0]}{zh_aspect}{zh_place}。", f"{subject.en} {head + ' ' if head else ''}{rest}."


@kind(3)
def going_to_do(s: Speaker) -> Pair:
    """去 place 做: go to the park to take a walk."""
    subject = s.somebody()
    verb = s.one([v for v in [*s.lexicon.activities, *s.lexicon.verbs]
        if v.places and v.flags.isdisjoint({"daily", "timed", "bad", "feel", "once",
        "state", "keeping", "wearing", "giving"}) and "people" not in v.objects])  # fmt: skip
    place = s.place_for(verb) if verb.zh_object != "东西" else None
    if (
        place is None
        or place.kinds & {"home", "home_like", "kitchen", "street", "sleep", "bath"}
        or place.zh in ("外面", "楼下")
    ):
        return going(s)
    action = s.act(verb, "one some", subject, described=False)
    zh_place = place.zh + ("边" if place.zh in ("河", "湖", "海") else "")
    doing_zh, doing_en = f"{action.verb.zh}{action.zh_object}", action.english(verb.en.base, subject)
    go = next(v for v in s.lexicon.activities if v.zh_object == "学" and v.zh == "上").en
    tense = s.one(("past", "will", "present"))
    head, form = conjugate(go, tense, subject.person)
    if tense == "present":
        zh_often, en_often = s.one([(t.zh, t.en) for t in s.lexicon.times if "often" in t.kinds])
        return (
            f"{subject.zh}{zh_often}去{zh_place}{doing_zh}。",
            f"{subject.en} {en_often} {form} {place.en_to} to {doing_en}.",
        )
    time = when(s, "past" if tense == "past" else "future")
    zh_go = "去" if tense == "past" else "要去"
    done = "了" if tense == "past" else ""
    end = f"{zh_go}{zh_place}{doing_zh}{done}"
    return (
        f"{subject.zh}{time[0]}{end}。",
        f"{subject.en} {head + ' ' if head else ''}{form} {place.en_to} to {doing_en} {time[1]}.",
    )


@kind(3)
def placed(s: Speaker) -> Pair:
    """Where somebody or something is."""
    draw = s.rng.random()
    if draw < 0.45:
        subject = s.somebody()
        if s.chance(0.35):
            city = s.name("city country")
            where = (city.zh, f"in {city.en}")
        else:
            place = s.one(s.lexicon.places)
            where = (place.where, place.en_where)
        draw = s.rng.random()
        if draw < 0.25:
            return f"{subject.zh}在{where[0]}吗？", f"{be(subject.person)} {subject.en} {where[1]}?"
        if draw < 0.45:
            return f"{subject.zh}不在{where[0]}。", f"{subject.en} {be(subject.person)} not {where[1]}."
        if draw < 0.7:
            time = when(s, "past")
            return (
                f"{subject.zh}{time[0]}在{where[0]}。",
                f"{subject.en} {be(subject.person, True)} {where[1]} {time[1]}.",
            )
        return f"{subject.zh}在{where[0]}。", f"{subject.en} {be(subject.person)} {where[1]}."
    owner = s.one(PRONOUNS)
    thing = s.thing(s.one(s.nouns(LIES.split())), "own own the this", owner, described=False)
    if s.chance(0.25):
        return f"{thing.zh}在哪里？", f"where {be(thing.person)} {thing.en}?"
    if s.chance(0.3):
        one, other = (
            s.one([p for p in s.lexicon.places if "public" in p.kinds]),
            s.one([p for p in s.lexicon.places if "public" in p.kinds]),
        )
        if one != other:
            near = s.one((("旁边", "next to"), ("对面", "across from"), ("后面", "behind"), ("附近", "near")))
            return f"{one.zh}在{other.zh}{near[0]}。", f"{one.en} is {near[1]} {other.en}."
    zh, en = spot(s, thing.noun)
    negative = s.chance(0.15)
    return (
        f"{thing.zh}{'不' if negative else ''}在{zh}。",
        f"{thing.en} {be(thing.person)} {'not ' if negative else ''}{en}.",
    )


def spot(s: Speaker, noun: Noun | None) -> Pair:
    """A place in or near a thing, where the noun may well be: 桌子上, on the table."""
    kinds = noun.kinds if noun else frozenset()
    if kinds & {"animal", "people"}:
        options = [("下面", "under", "桌子 椅子 床 沙发 树"), ("后面", "behind", "房子 沙发 树 门"),
            ("旁边", "next to", "汽车 树 床 桌子"), ("上", "on", "沙发 床 地毯 椅子")]  # fmt: skip
    elif kinds & {"food", "fruit"}:
        options = [("里", "in", "冰箱 篮子 碗 盒子 袋子"), ("上", "on", "桌子 盘子")]
    else:
        options = [("里", "in", "箱子 盒子 书包 抽屉 柜子 行李箱 篮子 口袋"),
            ("上", "on", "桌子 书桌 椅子 床 书架 沙发"), ("下面", "under", "桌子 床 椅子 枕头"),
            ("旁边", "next to", "电脑 电视 灯 床"), ("后面", "behind", "门 电视 沙发")]  # fmt: skip
    zh, en, places = s.one(options)
    found = s.one([n for n in s.lexicon.nouns if n.zh in places.split() and n != noun])
    return found.zh + zh, f"{en} the {found.en}"


@kind(4)
def there_is(s: Speaker) -> Pair:
    noun = s.one(
        s.nouns(["animal", "small", "fruit", "book", "plant", "furniture", "vehicle", "container", "dish", "people"])
    )
    found = next((places for kinds, places in FOUND_IN if kinds in noun.kinds), "")
    if found:
        place = s.one([p for p in s.lexicon.places if p.kinds & set(found.split()) and p.zh not in ("体育馆", "楼下")])
        where = (place.where, place.en_where)
    else:
        where = spot(s, noun)
    thing = s.thing(noun, "one one many many some")
    draw = s.rng.random()
    is_ = be("3p" if thing.person == "3p" else "3s")
    if draw < 0.12 and thing.forms == "one":
        return f"{where[0]}没有{noun.zh}。", f"there {be('3s' if noun.mass else '3p')} no {noun.plural} {where[1]}."
    if draw < 0.24:
        return f"{where[0]}有{thing.zh}吗？", f"{is_} there {thing.en.replace('some ', 'any ')} {where[1]}?"
    if draw < 0.36 and not noun.mass and not noun.always_plural:
        return f"{where[0]}有多少{noun.measure}{noun.zh}？", f"how many {noun.plural} are there {where[1]}?"
    if draw < 0.5:
        return f"{where[0]}有什么？", f"what is {where[1]}?"
    return f"{where[0]}有{thing.zh}。", f"there {is_} {thing.en} {where[1]}."


@kind(1.5)
def people_there(s: Speaker) -> Pair:
    """There are three students in the classroom."""
    at_work = {"学生": "school", "老师": "school", "大学生": "study", "医生": "hospital",
        "护士": "hospital", "工人": "work", "农民": "farm", "服务员": "eat", "警察": "street"}  # fmt: skip
    person = s.one([p for p in s.lexicon.people if "person" in p.kinds or p.zh in at_work])
    fitting = {at_work[person.zh]} if person.zh in at_work else {"public", "outside", "inside", "street"}
    place = s.one([p for p in s.lexicon.places if p.kinds & fitting and p.zh not in ("楼下", "外面")])
    n = s.one((1, 2, 3, 4, 5, 6, 10, 20))
    measure = "位" if "job" in person.kinds and person.zh not in ("学生", "大学生", "士兵") else "个"
    if s.chance(0.3):
        return f"{place.where}有很多{person.zh}。", f"there are many {person.plural} {place.en_where}."
    en = article(person.en) if n == 1 else f"{number(n)} {person.plural}"
    return (
        f"{place.where}有{chinese_number(n, True)}{measure}{person.zh}。",
        f"there {'is' if n == 1 else 'are'} {en} {place.en_where}.",
    )


@kind(4)
def having(s: Speaker) -> Pair:
    subject = s.somebody()
    have = "has" if subject.person == "3s" else "have"
    if s.chance(0.25):
        person = s.one(
            [
                p
                for p in s.lexicon.people
                if "kin" in p.kinds
                and not p.kinds & {"one", "plural"}
                and p.zh not in ("爸爸", "妈妈", "爷爷", "奶奶", "外公", "外婆")
            ]
        )
        n = s.one((1, 1, 2, 2, 3))
        en = article(person.en) if n == 1 else f"{number(n)} {person.plural}"
        return f"{subject.zh}有{chinese_number(n, True)}个{person.zh}。", f"{subject.en} {have} {en}."
    noun = s.one(
        s.nouns(
            [
                "pet",
                "small",
                "book",
                "vehicle",
                "electronic",
                "clothes",
                "instrument",
                "house",
                "toy",
                "question",
                "idea",
                "dream",
                "mistake",
                "container",
            ]
        )
        or s.lexicon.nouns
    )
    if "mistake" in noun.kinds:
        return having(s)
    thing = s.thing(noun, "one one many some")
    draw = s.rng.random()
    if draw < 0.2:
        do = "doesn't" if subject.person == "3s" else "don't"
        what = noun.plural if noun.mass or noun.always_plural else article(noun.en)
        return f"{subject.zh}没有{noun.zh}。", f"{subject.en} {do} have {what}."
    if draw < 0.4:
        do = "does" if subject.person == "3s" else "do"
        what = noun.plural if noun.mass or noun.always_plural else article(noun.en)
        return f"{subject.zh}有{noun.zh}吗？", f"{do} {subject.en} have {what}?"
    if draw < 0.5 and not noun.mass and not noun.always_plural:
        do = "does" if subject.person == "3s" else "do"
        return f"{subject.zh}有几{noun.measure}{noun.zh}？", f"how many {noun.plural} {do} {subject.en} have?"
    return f"{subject.zh}有{thing.zh}。", f"{subject.en} {have} {thing.en}."


def singular_subject(s: Speaker) -> Phrase:
    return s.one(PRONOUNS[:4]) if s.chance(0.5) else s.name("m f")


@kind(4)
def being(s: Speaker) -> Pair:
    """Somebody's work, country, relation."""
    job = s.one([p for p in s.lexicon.people if "job" in p.kinds])
    draw = s.rng.random()
    measure = "名" if job.zh not in ("学生", "大学生") else "个"
    if draw < 0.4:
        subject = singular_subject(s) if s.chance(0.5) else s.kin()
        many = subject.person == "3p"
        what_en = job.plural if many else article(job.en)
        zh = f"是一{measure}{job.zh}" if s.chance(0.3) and not many else f"是{job.zh}"
        if s.chance(0.2):
            return f"{subject.zh}不是{job.zh}。", f"{subject.en} {be(subject.person)} not {what_en}."
        if s.chance(0.2):
            return f"{subject.zh}是{job.zh}吗？", f"{be(subject.person)} {subject.en} {what_en}?"
        return f"{subject.zh}{zh}。", f"{subject.en} {be(subject.person)} {what_en}."
    if draw < 0.6:
        country = s.one([n for n in s.lexicon.names if n.kind == "country"])
        subject = s.somebody()
        if s.chance(0.25):
            return f"{subject.zh}是{country.zh}人吗？", f"{be(subject.person)} {subject.en} {country.nationality}?"
        return f"{subject.zh}是{country.zh}人。", f"{subject.en} {be(subject.person)} {country.nationality}."
    if draw < 0.75:
        there, subject = s.name("city country"), s.somebody()
        live = "lives" if subject.person == "3s" else "live"
        return s.one(((f"{subject.zh}来自{there.zh}。", f"{subject.en} {be(subject.person)} from {there.en}."),
            (f"{subject.zh}住在{there.zh}。", f"{subject.en} {live} in {there.en}.")))  # fmt: skip
    if draw < 0.9:
        subject, kin = s.name("m f"), s.kin(s.one(PRONOUNS))
        if kin.person == "3p" or (kin.gender in "mf" and kin.gender != subject.gender):
            return being(s)
        return f"{subject.zh}是{kin.zh}。", f"{subject.en} is {kin.en}."
    subject = s.one((PRONOUNS[0], PRONOUNS[2], PRONOUNS[3]))
    return (
        f"{subject.zh}想当{job.zh}。",
        f"{subject.en} {'want' if subject.person == '1s' else 'wants'} to be {article(job.en)}.",
    )


@kind(3)
def owned(s: Speaker) -> Pair:
    """This is mine, whose is that."""
    noun = s.one(
        s.nouns(["small", "book", "clothes", "vehicle", "electronic", "container", "pet", "house", "instrument", "toy"])
    )
    if noun.mass or noun.always_plural:
        return owned(s)
    owner = s.one(PRONOUNS) if s.chance(0.5) else s.kin() if s.chance(0.4) else s.name("m f")
    zh_this, en_this = s.one((("这", "this"), ("那", "that")))
    draw = s.rng.random()
    if draw < 0.3:
        return f"{zh_this}是{owner.zh}的{noun.zh}。", f"{en_this} is {owner.own} {noun.en}."
    if draw < 0.5:
        whose = MINE.get(owner.own, owner.own)
        return f"{zh_this}{noun.measure}{noun.zh}是{owner.zh}的。", f"{en_this} {noun.en} is {whose}."
    if draw < 0.65:
        return f"{zh_this}{noun.measure}{noun.zh}是谁的？", f"whose {noun.en} is {en_this}?"
    if draw < 0.8:
        return f"{zh_this}是{owner.zh}的{noun.zh}吗？", f"is {en_this} {owner.own} {noun.en}?"
    if draw < 0.9:
        return f"{zh_this}不是{owner.zh}的{noun.zh}。", f"{en_this} is not {owner.own} {noun.en}."
    return f"{zh_this}是一{noun.measure}{noun.zh}。", f"{en_this} is {article(noun.en)}."


def quality(s: Speaker, flag: str = "") -> tuple[Phrase, Adjective]:
    """Something or somebody, and an adjective that fits."""
    while True:
        adjective = s.one([a for a in s.lexicon.adjectives if not flag or flag in a.flags])
        kinds = sorted(adjective.kinds)
        if "person" in kinds and s.chance(0.75 if len(kinds) > 1 else 1):
            return s.somebody(), adjective
        kind_ = s.one(kinds)
        if kind_ == "city":
            return s.name("city"), adjective
        nouns = s.nouns([kind_])
        if nouns:
            owner = s.one(PRONOUNS)
            noun = s.one(nouns)
            found = s.thing(noun, "this this own these" if not noun.mass else "this the", owner, described=False)
            return found, adjective


def not_so(adjective: Adjective) -> str:
    """没有耐心, but 不高."""
    return ("没" if adjective.zh[0] == "有" and adjective.zh != "有名" else "不") + adjective.zh


@kind(6)
def such(s: Speaker) -> Pair:
    """How somebody or something is."""
    subject, adjective = quality(s)
    is_ = be(subject.person)
    draw = s.rng.random()
    if "color" in adjective.flags:
        if draw < 0.2:
            return f"{subject.zh}是什么颜色的？", f"what color {is_} {subject.en}?"
        return f"{subject.zh}是{adjective.zh}色的。", f"{subject.en} {is_} {adjective.en}."
    if draw < 0.45:
        zh, en = s.one(
            (
                ("很", ""),
                ("很", "very "),
                ("非常", "very "),
                ("真", "really "),
                ("太{}了", "too "),
                ("有点", "a little "),
            )
        )
        if en == "a little " and adjective.en in [
            "beautiful",
            "delicious",
            "tasty",
            "cute",
            "smart",
            "interesting",
            "famous",
            "kind",
            "friendly",
            "honest",
            "brave",
            "healthy",
            "young",
            "new",
            "clean",
            "comfortable",
            "convenient",
            "fresh",
            "happy",
            "rich",
            "polite",
            "hardworking",
            "quiet",
        ]:
            zh, en = "很", "very "
        if "{}" in zh:
            return f"{subject.zh}{zh.format(adjective.zh)}。", f"{subject.en} {is_} {en}{adjective.en}."
        return f"{subject.zh}{zh}{adjective.zh}。", f"{subject.en} {is_} {en}{adjective.en}."
    if draw < 0.6:
        return f"{subject.zh}{not_so(adjective)}。", f"{subject.en} {is_} not {adjective.en}."
    if draw < 0.75 and subject.zh not in ("我", "我们"):
        return f"{subject.zh}{adjective.zh}吗？", f"{is_} {subject.en} {adjective.en}?"
    if "feeling" in adjective.flags:
        if draw < 0.88:
            time = when(s, "past")
            return (
                f"{subject.zh}{time[0]}很{adjective.zh}。",
                f"{subject.en} {be(subject.person, True)} very {adjective.en} {time[1]}.",
            )
        look = "looks" if subject.person == "3s" else "look"
        return f"{subject.zh}看起来很{adjective.zh}。", f"{subject.en} {look} {adjective.en}."
    again = [
        a for a in s.lexicon.adjectives if a.kinds == adjective.kinds and a.zh != adjective.zh and "rise" in a.flags
    ]
    pairs = [a for a in again if not a.bars(adjective)]
    if not pairs or "rise" not in adjective.flags or len(adjective.kinds) > 1:
        return such(s)
    other = s.one(pairs)
    return f"{subject.zh}又{adjective.zh}又{other.zh}。", f"{subject.en} {is_} both {adjective.en} and {other.en}."


@kind(4)
def more(s: Speaker) -> Pair:
    """比, 没有, 跟 ... 一样, 最."""
    subject, adjective = quality(s, "rise")
    is_ = be(subject.person)
    if subject.noun is None:
        if (
            subject.gender == ""
            and subject.own
            and not subject.own.startswith(("my", "your", "his", "her", "our", "their"))
            and adjective.kinds >= {"city"}
        ) or subject.zh in [n.zh for n in s.lexicon.names if n.kind == "city"]:
            other = s.name("city")
        else:
            other = s.other_than(subject)
        if other == subject:
            return more(s)
        zh_other, en_other = other.zh, other.object
        if other in PRONOUNS and s.chance(0.5):
            en_other = f"{other.en} {be(other.person)}"
    elif subject.forms == "own":
        owner = s.one([p for p in PRONOUNS if p.zh[0] != subject.zh[0]])
        zh_other, en_other = f"{owner.zh}的", MINE[owner.own]
        if not subject.zh.startswith(tuple(p.zh for p in PRONOUNS)):
            return more(s)
    elif subject.forms == "this":
        measure = subject.noun.measure
        near = subject.zh[0] == "这"
        zh_other, en_other = f"{'那' if near else '这'}{measure}", f"{'that' if near else 'this'} one"
        if subject.noun.mass or subject.noun.always_plural:
            return more(s)
    else:
        return more(s)
    draw = s.rng.random()
    if draw < 0.5:
        zh_much, en_much = s.one((("", ""), ("", ""), ("一点", "a little "), ("得多", "much "), ("多了", "much ")))
        return (
            f"{subject.zh}比{zh_other}{adjective.zh}{zh_much}。",
            f"{subject.en} {is_} {en_much}{adjective.more} than {en_other}.",
        )
    if draw < 0.65:
        return f"{subject.zh}没有{zh_other}{adjective.zh}。", f"{subject.en} {is_} not as {adjective.en} as {en_other}."
    if draw < 0.8:
        return f"{subject.zh}和{zh_other}一样{adjective.zh}。", f"{subject.en} {is_} as {adjective.en} as {en_other}."
    return f"{subject.zh}比{zh_other}{adjective.zh}吗？", f"{is_} {subject.en} {adjective.more} than {en_other}?"


@kind(1.5)
def most(s: Speaker) -> Pair:
    adjective = s.one(
        [
            a
            for a in s.lexicon.adjectives
            if "rise" in a.flags and "person" in a.kinds and a.en not in ("old", "rich", "poor")
        ]
    )
    subject = singular_subject(s)
    group_zh, group_en = s.one(
        (
            ("我们班", "in our class"),
            ("他们班", "in their class"),
            ("学校里", "in the school"),
            ("我们家", "in our family"),
            ("我们公司", "in our company"),
        )
    )
    who = {"我们班": ("学生", "student"), "他们班": ("学生", "student"), "学校里": ("老师", "teacher")}.get(
        group_zh, ("人", "person")
    )
    joint = "" if len(adjective.zh) == 1 and False else "的"
    return (
        f"{subject.zh}是{group_zh}最{adjective.zh}{joint}{who[0]}。",
        f"{subject.en} {be(subject.person)} the {adjective.most} {who[1]} {group_en}.",
    )


@kind(4)
def ba(s: Speaker) -> Pair:
    """把 with what became of the thing."""
    subject = s.somebody()
    verb = s.one([v for v in s.lexicon.verbs if v.done and "people" not in v.objects])
    draw = s.rng.random()
    if (draw < 0.12 and "harm" in verb.flags) or (draw > 0.35 and draw < 0.45 and subject.zh.startswith("我")):
        return ba(s)
    owner = PRONOUNS[1] if draw < 0.12 else s.one(PRONOUNS) if s.chance(0.3) else subject
    noun = s.one(s.nouns(sorted(verb.objects)))
    thing = s.thing(noun, "the own this", owner, described=False)
    if thing.forms == "own" and verb.zh in ("做", "偷", "写"):
        return ba(s)
    if verb.done.endswith("完了"):  # 写完, finish writing
        ending = EnglishVerb("finish", "finished", "finished", verb.en.ing)
        verb = replace(verb, en=ending)
    action = Action(verb, thing.zh, thing.en)
    if draw < 0.12:
        base = verb.done.removesuffix("了")
        if len(base) == 1:
            base = verb.done
        return f"请把{thing.zh}{base}。" if len(
            base
        ) > 1 else f"请{base}{thing.zh}。", f"please {action.english(verb.en.base)}."
    time = soon(s, "past") if s.chance(0.4) else ("", "")
    auxiliary, form = conjugate(verb.en, "past", subject.person, negative=draw < 0.25)
    said = " ".join(w for w in (subject.en, auxiliary, action.english(form, subject), time[1]) if w)
    if draw < 0.25:
        return f"{subject.zh}{time[0]}没把{thing.zh}{verb.done.removesuffix('了')}。" if len(
            verb.done
        ) > 2 else f"{subject.zh}{time[0]}没{verb.zh}{thing.zh}。", f"{said}."
    if draw < 0.35:
        if thing.zh.startswith("自己"):
            return ba(s)
        return f"是谁把{thing.zh}{verb.done}？", f"who {action.english(verb.en.past)}?"
    if draw < 0.45:
        auxiliary, who, _ = ("did", subject.en, "")
        return f"{subject.zh}把{thing.zh}{verb.done}吗？", f"did {who} {action.english(verb.en.base, subject)}?"
    return f"{subject.zh}{time[0]}把{thing.zh}{verb.done}。", f"{said}."


@kind(5)
def put(s: Speaker) -> Pair:
    """把 something 放在 somewhere."""
    subject = s.somebody()
    noun = s.one(s.nouns(["small", "fruit", "dish", "book", "container", "toy", "stationery", "clothes", "electronic"]))
    draw = s.rng.random()
    thing = s.thing(noun, "the own this", PRONOUNS[1] if draw < 0.25 else subject, described=False)
    zh, en = spot(s, noun)
    hidden = ("放", "put") if zh[-1] == "上" else ("藏", "hid")
    verb_zh, past_en = s.one((("放", "put"), ("放", "put"), ("忘", "left"), hidden))
    if draw < 0.15:
        return f"请把{thing.zh}放在{zh}。", f"please put {thing.en} {en}."
    if draw < 0.25:
        return f"别把{thing.zh}放在{zh}。", f"don't put {thing.en} {en}."
    if draw < 0.35:
        return f"{subject.zh}把{thing.zh}放在哪里了？", f"where did {subject.en} put {thing.en}?"
    time = when(s, "past") if s.chance(0.25) else ("", "")
    return (
        f"{subject.zh}{time[0]}把{thing.zh}{verb_zh}在{zh}了。"
        if s.chance(0.5)
        else f"{subject.zh}{time[0]}把{thing.zh}{verb_zh}在了{zh}。",
        f"{subject.en} {past_en} {thing.en} {en}{' ' + time[1] if time[1] else ''}.",
    )


@kind(4)
def bei(s: Speaker) -> Pair:
    """被: what was done to something, by whom."""
    verb = s.one([v for v in s.lexicon.verbs if v.done and v.zh not in ("写", "做", "翻译", "忘记", "收拾")])
    by = s.somebody() if s.chance(0.8) else None
    kind_ = s.one(sorted(verb.objects))
    if kind_ == "people":
        subject = s.other_than(by) if by else s.somebody()
    else:
        subject = s.thing(s.one(s.nouns([kind_])), "own the this", s.one(PRONOUNS), described=False)
    participle = verb.en.participle + (f" {verb.en.rest}" if verb.en.rest else "")
    time = soon(s, "past") if s.chance(0.3) else ("", "")
    negative = s.chance(0.1)
    tail = "".join(f" {w}" for w in ((f"by {by.object}" if by else ""), time[1]) if w)
    was = be(subject.person, True)
    if negative and len(verb.done) > 2:
        zh = f"{subject.zh}没有被{by.zh if by else ''}{verb.done.removesuffix('了')}。"
        return zh, f"{subject.en} {was} not {participle}{f' by {by.object}' if by else ''}."
    return f"{subject.zh}{time[0]}被{by.zh if by else ''}{verb.done}。", f"{subject.en} {was} {participle}{tail}."


@kind(4)
def giving(s: Speaker) -> Pair:
    """给: giving, sending, buying for, lending, telling."""
    subject = s.somebody()
    other = s.other_than(subject)
    zh, past_en, base, kinds, order = s.one((
        ("送给", "gave", "give", "gift", "direct"), ("借给", "lent", "lend", "book money bike stationery", "direct"),
        ("还给", "returned", "return", "book money bike", "to"),
        ("给{}买", "bought", "buy", "clothes gift fruit book", "for"),
        ("给{}寄", "sent", "send", "message gift", "direct"), ("给{}做", "made", "make", "cooked", "for"),
        ("给{}写", "wrote", "write", "message", "direct"), ("给{}讲", "told", "tell", "story_told", "direct"),
        ("卖给", "sold", "sell", "vehicle electronic house", "direct"),
        ("教", "taught", "teach", "language instrument", "direct"),
    ))  # fmt: skip
    if zh == "教":
        name = s.one([n for n in s.lexicon.names if n.language])
        thing = Phrase(name.language, name.nationality)
    else:
        noun = s.one(
            [n for n in s.lexicon.nouns if n.zh == "故事"] if kinds == "story_told" else s.nouns(kinds.split())
        )
        form = (
            "this own"
            if order == "to"
            else "one one many some own"
            if "讲" not in zh and "寄" not in zh and other.object != subject.whose  # gave her her book
            else "one many"
        )
        thing = s.thing(noun, form, subject, described=False)
    tense = s.one(("past", "past", "past", "will", "want"))
    time = when(s, "past" if tense == "past" else "future") if s.chance(0.35) or tense == "will" else ("", "")
    verb = {
        "past": past_en,
        "will": f"will {base}",
        "want": f"{'wants' if subject.person == '3s' else 'want'} to {base}",
    }[tense]
    before = {"past": "", "will": "要", "want": "想"}[tense]
    done = "了" if tense == "past" else ""
    middle = (
        f"{zh.format(other.zh)}{done}{thing.zh}"
        if "{}" in zh
        else f"{zh}{other.zh}{thing.zh}"
        if zh == "教"
        else f"{zh}{done}{other.zh}{thing.zh}"
    )
    if order == "to" or (zh in ("借给", "送给", "还给", "卖给") and thing.forms in ("own", "this")):
        middle = f"把{thing.zh}{zh}{other.zh}" + ("了" if tense == "past" else "")
        return (
            f"{subject.zh}{time[0]}{before}{middle}。",
            f"{subject.en} {verb} {thing.en} to {other.object}{' ' + time[1] if time[1] else ''}.",
        )
    objects = f"{thing.en} for {other.object}" if order == "for" and s.chance(0.5) else f"{other.object} {thing.en}"
    return (
        f"{subject.zh}{time[0]}{before}{middle}。",
        f"{subject.en} {verb} {objects}{' ' + time[1] if time[1] else ''}.",
    )


def done_thing(s: Speaker) -> tuple[Phrase, Verb, Phrase, Pair] | None:
    """Somebody, what he or she did, to which noun, and when: for relative clauses."""
    subject = s.somebody()
    verb = s.one(
        [
            v
            for v in s.lexicon.verbs
            if v.zh in ("买", "写", "画", "看", "借", "做", "收到", "唱", "养", "丢", "卖", "找到", "修", "穿", "种")
            and v.en.base != "do"
        ]
    )
    noun = s.one(s.nouns([s.one(sorted(verb.objects))]))
    return subject, verb, Phrase(noun.zh, noun.en, "3p" if noun.always_plural else "3s", noun=noun), when(s, "past")


@kind(5)
def which(s: Speaker) -> Pair:
    """Relative clauses with 的."""
    draw = s.rng.random()
    if draw < 0.5:
        found = done_thing(s)
        if found is None or found[2].noun is None:
            return which(s)
        subject, verb, head, time = found
        noun = head.noun
        assert noun is not None
        present = verb.zh in ("养", "穿")
        time = ("", "") if present or s.chance(0.4) else time
        auxiliary, form = conjugate(
            verb.en, "progressive" if verb.zh == "穿" else "present" if present else "past", subject.person
        )
        said = " ".join(w for w in (subject.en, auxiliary, form, verb.en.rest, time[1]) if w)
        that = "that " if s.chance(0.4) else ""
        count = f"那{noun.measure}" if s.chance(0.4) else ""
        zh_noun = f"{subject.zh}{time[0]}{verb.zh}的{count}{noun.zh}"
        en_noun = f"the {noun.en} {that}{said}"
        adjective = s.adjective(noun)
        if adjective and "color" not in adjective.flags and s.chance(0.6):
            very_zh, very_en = s.one((("很", ""), ("非常", "very "), ("不", "not ")))
            such_zh = not_so(adjective) if very_zh == "不" else very_zh + adjective.zh
            return f"{zh_noun}{such_zh}。", f"{en_noun} {be(head.person)} {very_en}{adjective.en}."
        if s.chance(0.4):
            return f"{zh_noun}在哪里？", f"where {be(head.person)} {en_noun}?"
        liker = s.one([p for p in PRONOUNS if p.zh[0] != subject.zh[0]])
        like = "likes" if liker.person == "3s" else "like"
        return f"{liker.zh}喜欢{zh_noun}。", f"{liker.en} {like} {en_noun}."
    if draw < 0.85:
        person = s.one([p for p in s.lexicon.people if p.kinds & {"person"} and p.zh not in ("小偷", "婴儿", "客人")])
        inner = clause(s, "progressive", Phrase("", "who", "3s", gender=person.gender)).but(companion=("", ""))
        zh = inner.chinese()
        zh_head = f"{zh}的那个{person.zh}"
        en_head = f"the {person.en} who {inner.english_words(False)[0]} {inner.english_words(False)[2]}"
        kin = s.kin(s.one(PRONOUNS))
        if kin.person == "3p" or (kin.gender in "mf" and person.gender in "mf" and kin.gender != person.gender):
            return which(s)
        draw = s.rng.random()
        if draw < 0.5:
            return f"{zh_head}是{kin.zh}。", f"{en_head} is {kin.en}."
        if draw < 0.75:
            return f"{zh_head}是谁？", f"who is {en_head}?"
        knower = s.one(PRONOUNS[:5])
        know = "knows" if knower.person == "3s" else "know"
        return f"{knower.zh}认识{zh_head}。", f"{knower.en} {know} {en_head}."
    person = s.one(
        [p for p in s.lexicon.people if p.kinds & {"person"} and p.zh in ("男孩", "女孩", "孩子", "男人", "女人")]
    )
    color = s.one([a for a in s.lexicon.adjectives if "color" in a.flags and "clothes" in a.kinds])
    noun = s.one(
        [n for n in s.nouns(["clothes"]) if n.kinds.isdisjoint({"headwear"}) and n.zh != "围巾" and n.zh != "领带"]
    )
    worn = f"{color.en} {noun.plural}" if noun.always_plural else article(f"{color.en} {noun.en}")
    name = s.name("f" if person.gender == "f" else "m")
    en_in = s.one(("in", "wearing"))
    if person.gender == "m" and noun.zh in ("裙子", "连衣裙"):
        return which(s)
    if s.chance(0.3):
        return f"穿{color.zh}{noun.zh}的{person.zh}是谁？", f"who is the {person.en} {en_in} {worn}?"
    return f"穿{color.zh}{noun.zh}的那个{person.zh}是{name.zh}。", f"the {person.en} {en_in} {worn} is {name.en}."


def acts(s: Speaker, wanted: frozenset[str], subject: Phrase, forms: str) -> Action:
    """One of the verbs named, with its object."""
    verbs = [
        v
        for v in [*s.lexicon.activities, *s.lexicon.verbs]
        if v.zh + v.zh_object in wanted and v.flags.isdisjoint({"state"})
    ]
    return s.act(s.one(verbs), forms, subject)


@kind(6)
def because(s: Speaker) -> Pair:
    """因为, 所以, 虽然, 但是."""
    subject = s.somebody()
    if not pronoun_of(subject):
        return because(s)
    same = replace(subject, zh=same_zh(subject), en=pronoun_of(subject))
    why = s.one(s.lexicon.reasons)
    auxiliary, form = conjugate(why.en, "past", subject.person)
    was = " ".join(w for w in (auxiliary, form, why.en.rest) if w)
    draw = s.rng.random()
    although, negative = draw > 0.72, s.chance(0.45)
    action = acts(
        s, why.not_then if negative != although else why.then, same, "this own" if negative else "one some this own"
    )
    result = Clause(same, action, "past", negative=negative)
    if although:
        still = f"{result.subject.zh}还是{result.but(subject=replace(same, zh='')).chinese()}"
        words = [w for w in result.english_words(False) if w and w != same.en]
        return (
            f"虽然{subject.zh}{why.zh}，但是{still}。",
            f"although {subject.en} {was}, {same.en} {'' if negative else 'still '}{' '.join(words)}.",
        )
    if draw < 0.25:
        return f"因为{subject.zh}{why.zh}，所以{result.chinese()}。", f"because {subject.en} {was}, {result.english()}."
    if draw < 0.45:
        return f"{subject.zh}{why.zh}，所以{result.chinese()}。", f"{subject.en} {was}, so {result.english()}."
    first = result.but(subject=subject)
    return f"{first.chinese()}，因为{same.zh}{why.zh}。", f"{first.english()} because {same.en} {was}."


def same_zh(subject: Phrase) -> str:
    if subject in PRONOUNS:
        return subject.zh
    return {"m": "他", "f": "她", "p": "他们"}[subject.gender]


def pronoun_of(subject: Phrase) -> str:
    """The English pronoun for somebody, "" where he or she may be either."""
    if subject in PRONOUNS:
        return subject.en
    return {"m": "he", "f": "she", "p": "they"}.get(subject.gender, "")


@kind(5)
def if_(s: Speaker) -> Pair:
    """如果 ... 就, and what one does when it rains."""
    day_zh, day_en = s.one((("", ""), ("明天", "tomorrow"), ("后天", "the day after tomorrow"), ("这个周末", "this weekend"),
        ("今天晚上", "tonight"), ("明天早上", "tomorrow morning")))  # fmt: skip
    subject, negative = s.one(PRONOUNS) if s.chance(0.7) else s.name("m f"), s.chance(0.4)
    same = subject if subject in PRONOUNS else replace(subject, zh=same_zh(subject), en=pronoun_of(subject))
    if s.chance(0.4):
        weather, same = s.one(s.lexicon.weather), subject
        en = f"it {with_s(weather.en) if 'falls' in weather.kinds else 'is ' + weather.en.removeprefix('be ')}"
        if weather.zh.startswith("很") and not day_zh:
            day_zh, day_en = "今天", "today"
        zh = f"{day_zh}{'是' if weather.zh.endswith('天') else ''}{weather.zh}"
        good = weather.zh in ("晴天", "很暖和", "很凉快")
        negative = s.chance(0.5) and not good
        wanted = OUTDOORS if good or negative else AT_HOME
    else:
        why = s.one([r for r in s.lexicon.reasons if not r.zh.startswith(("起", "喜欢"))])
        zh = f"{subject.zh}{day_zh}{why.zh}"
        en = " ".join(w for w in (subject.en, *conjugate(why.en, "present", subject.person), why.en.rest) if w)
        wanted = why.not_then if negative else frozenset(why.then - {"迟到", "忘记", "打破", "哭", "生气"}) or why.then
    then = Clause(same, acts(s, wanted, same, "this own" if negative else "one some this"), "will", negative=negative)
    zh_then = f"{same.zh}就{'不' if negative else s.one(('', '会'))}{then.action.verb.zh}{then.action.zh_object}"
    en_if = f"if {en}{' ' + day_en if day_en else ''}"
    if s.chance(0.3) and same is subject:
        return f"如果{zh}，{zh_then}。", f"{then.english()} {en_if}."
    return f"如果{zh}，{zh_then}。", f"{en_if}, {then.english()}."


@kind(3)
def fond(s: Speaker) -> Pair:
    """Countries, cities and their seasons: she loves autumn in Hangzhou."""
    subject, there = s.somebody(), s.name("city country")
    zh, en = s.one((("爱", "love"), ("喜欢", "like"), ("很喜欢", "really like")))
    very, _, base = en.rpartition(" ")
    said = f"{subject.en} {very + ' ' if very else ''}{with_s(base) if subject.person == '3s' else base}"
    if s.chance(0.3):
        return f"{subject.zh}{zh}{there.zh}。", f"{said} {there.en}."
    season = s.one([t for t in s.lexicon.times if "season" in t.kinds])
    if s.chance(0.3):
        adjective_zh, adjective_en = s.one((("美", "beautiful"), ("长", "long"), ("短", "short")))
        return f"{there.zh}的{season.zh}很{adjective_zh}。", f"{season.en} in {there.en} is {adjective_en}."
    return f"{subject.zh}{zh}{there.zh}的{season.zh}。", f"{said} {season.en} in {there.en}."


@kind(4)
def meanwhile(s: Speaker) -> Pair:
    """的时候, 以前, 以后, 一边 ... 一边."""
    subject = s.somebody()
    name = pronoun_of(subject)
    if not name:
        return meanwhile(s)
    again = replace(subject, en=name)
    draw = s.rng.random()
    verbs = [v for v in s.lexicon.activities if v.flags.isdisjoint({"bad", "feel", "timed", "outdoors"})]
    one = s.one(verbs)
    if draw < 0.35:
        other = s.other_than(subject)
        first = Clause(subject, Action(one, one.zh_object), "past progressive")
        second = clause(s, "progressive", other, simple=True)
        zh = f"{subject.zh}{one.zh}{one.zh_object}的时候，{second.chinese()}。"
        return zh, f"while {first.english()}, {second.but(aspect='past progressive', subject=other).english()}."
    if draw < 0.75:
        zh, en = s.one((("以前", "before"), ("以后", "after"), ("之前", "before"), ("之后", "after")))
        two = s.one([v for v in verbs if v != one and v.zh_object != one.zh_object])
        if s.chance(0.5):
            often_zh, often_en = s.one([(t.zh, t.en) for t in s.lexicon.times if "often" in t.kinds])
            second = Clause(again, Action(two, two.zh_object), "present", often=(often_zh, often_en))
            return (
                f"{subject.zh}{one.zh}{one.zh_object}{zh}{often_zh}{two.zh}{two.zh_object}。",
                f"{second.but(subject=subject).english()} {en} {one_ing(again, one)}.",
            )
        second = Clause(again, Action(two, two.zh_object), "past")
        return (
            f"{subject.zh}{one.zh}{one.zh_object}{zh}{two.zh}{two.zh_object}了。",
            f"{second.but(subject=subject).english()} {en} {one_ing(again, one)}.",
        )
    pairs = [("唱", "跳"), ("听", "跑"), ("吃", "看"), ("喝", "聊"), ("听", "做"), ("看", "吃"), ("走", "聊")]
    a, b = s.one(pairs)
    first_v = [v for v in s.lexicon.activities if v.zh == a and v.zh_object not in ("书", "电影")]
    second_v = [v for v in s.lexicon.activities if v.zh == b and v.zh_object not in ("书", "电影")]
    if not first_v or not second_v:
        return meanwhile(s)
    v, w = s.one(first_v), s.one(second_v)
    always = s.one([(t.zh, t.en) for t in s.lexicon.times if "often" in t.kinds])
    found = Clause(subject, Action(w, w.zh_object), "present", often=always)
    return (
        f"{subject.zh}{always[0]}一边{v.zh}{v.zh_object}一边{w.zh}{w.zh_object}。",
        f"{found.english()} while {one_ing(again, v)}.",
    )


def one_ing(subject: Phrase, verb: Verb) -> str:
    return Action(verb, verb.zh_object).english(verb.en.ing, subject)


@kind(4)
def sequence(s: Speaker) -> Pair:
    """先 ... 然后 ..., 一 ... 就."""
    subject = s.somebody()
    first, second = clause(s, "past", subject, simple=True), clause(s, "past", subject, simple=True)
    if (
        "harm" in first.action.verb.flags | second.action.verb.flags
        or {first.action.verb.zh, second.action.verb.zh} & {"说", "旅", "迟", "生", "教", "学"}
        or first.action.verb == second.action.verb
        or first.action.zh_object == second.action.zh_object
    ):
        return sequence(s)
    first, second = first.but(time=("", "")), second.but(time=("", ""), subject=replace(subject, zh="", en=""))
    time = s.one((("", ""), ("", ""), ("昨天", "yesterday"), ("昨天晚上", "last night"),
        ("上个周末", "last weekend"), ("今天早上", "this morning")))  # fmt: skip
    zh_first = first.but(subject=replace(subject, zh="")).chinese().removesuffix("了")
    zh = f"{subject.zh}{time[0]}先{zh_first}，然后{second.chinese()}。"
    start = f"{with_capital(time[1])}, " if time[1] else ""
    return (
        zh,
        f"{start}{first.english()} and then {second.english()}."
        if start
        else f"{'first ' if s.chance(0.3) else ''}{first.english()}, and then {second.english()}.",
    )


@kind(6)
def thinking(s: Speaker) -> Pair:
    """A clause inside a clause: think, know, say, hope, hear."""
    zh, en, past_en = s.one(
        (
            ("觉得", "think", "thought"),
            ("认为", "think", "thought"),
            ("知道", "know", "knew"),
            ("说", "say", "said"),
            ("希望", "hope", "hoped"),
            ("听说", "hear", "heard"),
            ("不知道", "not know", ""),
            ("相信", "believe", "believed"),
            ("告诉我", "tell me", "told me"),
        )
    )
    subject = s.somebody()
    s3 = subject.person == "3s"
    if zh == "告诉我" and subject.zh.startswith("我"):
        return thinking(s)
    said = f"{subject.en} {({'说': past_en, '告诉我': past_en, '听说': past_en}).get(zh) or (with_s(en) if s3 else en)}"
    if zh == "不知道":
        inner = clause(s, "past", s.somebody(), simple=True)
        word_zh, word_en = s.one((("为什么", "why"), ("什么时候", "when"), ("是不是", "whether")))
        do = "doesn't" if s3 else "don't"
        if word_zh == "什么时候":
            inner = clause(s, "will", inner.subject, simple=True)
        zh_inner = inner.but(subject=replace(inner.subject, zh=""), time=("", "")).chinese()
        return (
            f"{subject.zh}不知道{inner.subject.zh}{word_zh}{zh_inner}。",
            f"{subject.en} {do} know {word_en} {inner.but(time=('', '')).english()}.",
        )
    that = "that " if s.chance(0.3) else ""
    if zh in ("觉得", "认为") or (s.chance(0.25) and zh != "希望"):
        thing, adjective = quality(s)
        if "color" in adjective.flags:
            return thinking(s)
        past_ = zh in ("说", "告诉我", "听说")
        that = "" if thing.en.startswith("th") else that
        very_zh, very_en = s.one((("很", ""), ("非常", "very ")))
        en = f"{said} {that}{thing.en} {be(thing.person, past_)} {very_en}{adjective.en}."
        return f"{subject.zh}{zh}{thing.zh}{very_zh}{adjective.zh}。", en
    inner = clause(s, "will" if zh in ("希望",) else s.one(("past", "will")), simple=True)
    if zh in ("说", "告诉我", "听说") and inner.aspect == "will":
        return (
            f"{subject.zh}{zh}{inner.chinese()}。",
            f"{said} {'' if inner.subject.en.startswith('that') else that}{inner.but(aspect='would').english()}.",
        )
    if zh in ("说", "告诉我", "听说"):
        inner = inner.but(time=("", ""))
    return (
        f"{subject.zh}{zh}{inner.chinese()}。",
        f"{said} {'' if inner.subject.en.startswith('that') else that}{inner.english()}.",
    )


@kind(3)
def commands(s: Speaker) -> Pair:
    verb = s.one(
        [
            v
            for v in [*s.lexicon.verbs, *s.lexicon.activities]
            if v.flags.isdisjoint(
                {"state", "feel", "keeping", "wearing", "timed", "giving"} | ({"harm"} if s.chance(0.9) else set())
            )
            and "people" not in v.objects
        ]
    )
    draw = s.rng.random()
    you = PRONOUNS[1 if draw < 0.6 else 4]
    if draw < 0.3 and "activity" in verb.flags:
        return commands(s)
    action = s.act(verb, "this the own" if draw < 0.6 else "one some all", you, described=False)
    zh, en = f"{verb.zh}{action.zh_object}", action.english(verb.en.base, you)
    if verb.flags & {"bad", "harm"} or verb.zh in ("丢", "忘记", "打破", "偷"):
        return f"{s.one(('别', '不要'))}{zh}。", f"don't {en}."
    if draw < 0.3:
        return f"请{zh}。", f"please {en}."
    if draw < 0.6:
        place = s.place_for(verb)
        if place and "once" not in verb.flags and s.chance(0.5):
            return f"{s.one(('别', '不要'))}在{place.where}{zh}。", f"don't {en} {place.en_where}."
        return f"{s.one(('别', '不要'))}{zh}。", f"don't {en}."
    if "once" in verb.flags:
        return commands(s)
    time = soon(s, "future") if s.chance(0.4) else ("", "")
    place = s.place_for(verb)
    if place and s.chance(0.4):
        return (
            f"我们{time[0]}在{place.where}{zh}吧。",
            f"let's {en} {place.en_where}{' ' + time[1] if time[1] else ''}.",
        )
    return f"我们{time[0]}{zh}吧。", f"let's {en}{' ' + time[1] if time[1] else ''}."


@kind(3)
def weather_report(s: Speaker) -> Pair:
    weather = s.one(s.lexicon.weather)
    city = s.name("city") if s.chance(0.6) else None
    zh_city, en_city = (city.zh, f" in {city.en}") if city else ("", "")
    tense = s.one(("past", "will", "now", "season"))
    if tense == "season":
        season = s.one([t for t in s.lexicon.times if "season" in t.kinds])
        if not weather.kinds & {"is", "falls"}:
            return weather_report(s)
        en = f"it often {with_s(weather.en)}" if "falls" in weather.kinds else f"it is {weather.en.removeprefix('be ')}"
        if weather.en == "be windy":
            en = "it is often windy"
        zh = f"{'经常' if 'falls' in weather.kinds or weather.zh == '刮风' else ''}{weather.zh}"
        return f"{zh_city}{'的' if zh_city else ''}{season.zh}{zh}。", f"{en}{en_city} in {season.en}."
    if tense == "now":
        day_zh, day_en = s.one((("今天", "today"), ("现在", "now"), ("外面", "outside")))
        if day_zh == "外面":
            zh_city, en_city = "", ""
        if weather.en in ("rain", "snow"):
            return (
                f"{zh_city}{day_zh}正在{weather.zh}。" if day_zh != "外面" else f"外面正在{weather.zh}。",
                f"it is {weather.en}ing{en_city} {day_en}.",
            )
        if "is_day" in weather.kinds:
            day_zh, day_en = "今天", "today"
        zh_is = "是" if weather.zh.endswith("天") else ""
        return f"{zh_city}{day_zh}{zh_is}{weather.zh}。", f"it is {weather.en.removeprefix('be ')}{en_city} {day_en}."
    day_zh, day_en = when(s, "past" if tense == "past" else "future")
    if day_zh in ("刚才", "一个小时前", "两年前", "半年前", "去年", "明年", "上个月", "下个月"):
        return weather_report(s)
    if s.chance(0.2):
        did = "did it" if tense == "past" else "will it"
        if weather.en in ("rain", "snow"):
            return (
                f"{zh_city}{day_zh}{weather.zh}了吗？" if tense == "past" else f"{zh_city}{day_zh}会{weather.zh}吗？",
                f"{did} {weather.en}{en_city} {day_en}?",
            )
    auxiliary = {"past": "", "will": "will "}[tense]
    if weather.en in ("rain", "snow"):
        verb = f"{weather.en}ed" if tense == "past" else weather.en
        end = "了" if tense == "past" else ""
        return (
            f"{zh_city}{day_zh}{'会' if not end else ''}{weather.zh}{end}。",
            f"it {auxiliary}{verb}{en_city} {day_en}.",
        )
    is_ = "was" if tense == "past" else "will be"
    zh_is = (
        ("是" if weather.zh.endswith("天") else "")
        if tense == "past"
        else ("会是" if weather.zh.endswith("天") else "会")
    )
    return f"{zh_city}{day_zh}{zh_is}{weather.zh}。", f"it {is_} {weather.en.removeprefix('be ')}{en_city} {day_en}."


@kind(4)
def numbers(s: Speaker) -> Pair:
    """Clock, ages, prices, weekdays, how long."""
    subject = s.somebody()
    draw = s.rng.random()
    hour = s.rng.randint(1, 12)
    half = s.chance(0.3)
    if half:
        zh_hour, en_hour = f"{chinese_number(hour, True)}点半", f"half past {number(hour)}"
    else:
        zh_hour, en_hour = f"{chinese_number(hour, True)}点", f"{number(hour)} o'clock"
    if draw < 0.12:
        return f"现在{zh_hour}。", f"it is {en_hour} now."
    if draw < 0.35:
        verb = s.one(
            [
                v
                for v in s.lexicon.activities
                if v.flags & {"timed", "daily"} and v.zh_object not in ("衣服", "房间", "碗", "牙", "身体", "作业")
            ]
        )
        hours = next((hours for words, hours in HOURS if verb.zh + verb.zh_object in words), (8, 10))
        hour = s.rng.randint(*hours)
        zh_hour, en_hour = f"{chinese_number(hour, True)}点", f"{number(hour)} o'clock"
        if half:
            zh_hour, en_hour = f"{zh_hour}半", f"half past {number(hour)}"
        found = Clause(subject, Action(verb, verb.zh_object), "present")
        morning = (
            s.one((("每天", "every day"), ("早上", "in the morning")))
            if verb.zh in ("起", "上")
            else s.one((("每天", "every day"), ("晚上", "in the evening")))
            if verb.zh in ("睡", "下", "回")
            else ("每天", "every day")
        )
        if s.chance(0.3):
            return (
                f"{subject.zh}{morning[0]}几点{verb.zh}{verb.zh_object}？",
                f"{found.asked('what time')} {morning[1]}?",
            )
        return (
            f"{subject.zh}{morning[0]}{zh_hour}{verb.zh}{verb.zh_object}。",
            f"{found.english()} at {en_hour} {morning[1]}.",
        )
    if draw < 0.5:
        n = s.rng.randint(2, 90)
        who = s.kin() if s.chance(0.5) else singular_subject(s)
        return f"{who.zh}今年{chinese_number(n)}岁。" if s.chance(
            0.6
        ) else f"{who.zh}{chinese_number(n)}岁了。", f"{who.en} {be(who.person)} {number(n)} years old."
    if draw < 0.65:
        noun = s.one(
            [n for n in s.nouns(["clothes", "book", "electronic", "fruit", "small", "footwear"]) if not n.mass]
        )
        thing = s.thing(noun, "this", described=False)
        dear = bool(noun.kinds & {"electronic", "clothes", "footwear"})
        n = s.one((80, 99, 100, 120, 150, 200, 300, 500, 800) if dear else (2, 3, 5, 8, 10, 12, 15, 20, 25, 30, 45, 50))
        if s.chance(0.35):
            return f"{thing.zh}多少钱？", f"how much is {thing.en}?"
        return f"{thing.zh}{chinese_number(n, True)}块钱。", f"{thing.en} costs {number(n)} yuan."
    if draw < 0.75:
        day = s.one([t for t in s.lexicon.times if "weekday" in t.kinds])
        if s.chance(0.3):
            return s.one(
                (
                    (f"今天{day.zh}。", f"today is {day.en}."),
                    (f"昨天是{day.zh}。", f"yesterday was {day.en}."),
                    (f"明天是{day.zh}。", f"tomorrow is {day.en}."),
                )
            )
        what_zh, what_en = s.one(
            (
                ("没有课", "have no class"),
                ("有考试", "have an exam"),
                ("不上班", "not go to work"),
                ("要开会", "have a meeting"),
                ("很忙", "be busy"),
                ("有中文课", "have a Chinese class"),
            )
        )
        verb_en = (
            f"{be(subject.person)} busy"
            if what_en == "be busy"
            else ("doesn't go to work" if subject.person == "3s" else "don't go to work")
            if what_en.startswith("not")
            else what_en.replace("have", "has")
            if subject.person == "3s"
            else what_en
        )
        return f"{subject.zh}{day.zh}{what_zh}。", f"{subject.en} {verb_en} on {day.en}."
    if draw < 0.9:
        zh_n, en_n = s.one(
            (
                ("三年", "three years"),
                ("两年", "two years"),
                ("一年", "a year"),
                ("五年", "five years"),
                ("十年", "ten years"),
                ("半年", "half a year"),
                ("六个月", "six months"),
                ("三个小时", "three hours"),
                ("两个小时", "two hours"),
                ("一个小时", "an hour"),
                ("半个小时", "half an hour"),
                ("二十分钟", "twenty minutes"),
                ("一整天", "the whole day"),
            )
        )
        years = en_n.endswith(("year", "years", "months"))
        options = "中文 英语 钢琴 吉他 小提琴" if years else "书 电视 觉 篮球 足球 步 作业 音乐 电话 游戏 车 衣服 中文"
        verb = s.one([v for v in s.lexicon.activities if v.zh_object in options.split() and v.zh != "说"])
        form = conjugate(verb.en, "past", subject.person)[1]
        said = Action(verb, verb.zh_object).english(form, subject)
        time = ("", "") if years else when(s, "past")
        if time[0] in ("刚才", "一个小时前", "上个月", "去年", "两年前", "半年前", "三天前", "上个星期"):
            time = ("昨天", "yesterday")
        if s.chance(0.25):
            base = Action(verb, verb.zh_object).english(verb.en.base, subject)
            return (
                f"{subject.zh}{time[0]}{verb.zh}了多长时间{verb.zh_object}？",
                f"how long did {subject.en} {base}{' ' + time[1] if time[1] else ''}?",
            )
        return (
            f"{subject.zh}{time[0]}{verb.zh}了{zh_n}{verb.zh_object}。",
            f"{subject.en} {said} for {en_n}{' ' + time[1] if time[1] else ''}.",
        )
    month, day_n = s.rng.randint(1, 12), s.rng.randint(1, 28)
    months = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]
    return (
        f"{subject.zh}的生日是{chinese_number(month)}月{chinese_number(day_n)}号。",
        f"{subject.own} birthday is {months[month - 1]} {day_n}.",
    )


@kind(3)
def how_well(s: Speaker) -> Pair:
    """得: how well somebody does it."""
    verb = s.one(
        [v for v in s.lexicon.activities if v.flags & {"skill", "sport"} and v.zh_object not in ("照", "饭", "身体")]
    )
    subject = s.somebody()
    zh, en = s.one((("很好", "well"), ("非常好", "very well"), ("很快", "fast"), ("很慢", "slowly"), ("不太好", "")))
    if zh in ("很快", "很慢") and verb.zh not in ("跑", "游", "开", "骑", "说", "滑", "写"):
        zh, en = "很好", "well"
    twice = f"{verb.zh}{verb.zh_object}{verb.zh}得{zh}"
    if s.chance(0.4) and len(verb.zh_object) > 1:
        twice = f"的{verb.zh_object}{verb.zh}得{zh}"
    if en == "":
        found = Clause(subject, Action(verb, verb.zh_object), "present", negative=True)
        return f"{subject.zh}{twice}。", f"{found.english()} very well."
    found = Clause(subject, Action(verb, verb.zh_object), "present")
    return f"{subject.zh}{twice}。", f"{found.english()} {en}."


@kind(2)
def no_longer(s: Speaker) -> Pair:
    """已经 ... 了, 还没, 快要 ... 了, 不 ... 了."""
    subject = s.somebody()
    found = clause(s, "past", subject, simple=True, forms="this own").but(time=("", ""))
    if "people" in found.action.verb.objects or (
        "activity" in found.action.verb.flags and not found.action.verb.flags & {"daily", "timed"}
    ):
        return no_longer(s)
    draw = s.rng.random()
    bare = found.but(subject=replace(subject, zh=""))
    has = "has" if subject.person == "3s" else "have"
    participle = found.action.english(found.action.verb.en.participle, subject)
    if found.action.verb.en.base == "be":
        return no_longer(s)
    if draw < 0.5:
        return (
            f"{subject.zh}已经{bare.chinese()}{'' if bare.chinese().endswith('了') else '了'}。",
            f"{subject.en} {has} already {participle}.",
        )
    return (
        f"{subject.zh}还没{found.action.verb.zh}{found.action.zh_object}。",
        f"{subject.en} {has}n't {participle} yet.",
    )


@kind(0.6)
def called(s: Speaker) -> Pair:
    name, other = s.name("m f"), s.kin()
    if (
        name.zh[1:] in ("先生", "太太", "老师", "小姐")
        or other.person != "3s"
        or (other.gender in "mf" and other.gender != name.gender)
    ):
        return called(s)
    return s.one(
        (
            (f"我叫{name.zh}。", f"my name is {name.en}."),
            (f"{other.zh}叫{name.zh}。", f"{other.own} name is {name.en}."),
        )
    )


@kind(2.5)
def body(s: Speaker) -> Pair:
    """Hair, eyes, hands; what hurts, what is washed."""
    subject = s.one([p for p in PRONOUNS if p.person in ("1s", "2", "3s")]) if s.chance(0.5) else s.name("m f")
    noun = s.one(s.nouns(["body", "hair"]))
    own, is_ = f"{subject.own} {noun.plural}", "is" if noun.mass else "are"
    if noun.en == "face":
        own, is_ = f"{subject.own} face", "is"
    if s.chance(0.45):
        zh, en = s.one({
            "眼睛": (("很大", "big"), ("很漂亮", "beautiful"), ("是蓝色的", "blue"), ("是黑色的", "black")),
            "头发": (("很长", "long"), ("很短", "short"), ("是黑色的", "black"), ("是黄色的", "yellow")),
            "脸": (("很红", "red"), ("很脏", "dirty")), "脚": (("很大", "big"), ("很疼", "sore")),
            "手": (("很冷", "cold"), ("很脏", "dirty")), "牙齿": (("很白", "white"), ("很疼", "sore")),
        }[noun.zh])  # fmt: skip
        return f"{subject.zh}的{noun.zh}{zh}。", f"{own} {is_} {en}."
    if noun.zh in ("眼睛", "牙齿"):
        hurt_zh, hurt = s.one((("左", "left"), ("右", "right"))) if noun.zh == "眼睛" else ("", "")
        part = f"{hurt_zh}眼" if hurt else "牙"
        return f"{subject.zh}{part}疼。", f"{subject.own} {hurt + ' ' if hurt else ''}{noun.en} hurts."
    whose = subject.whose or "the"
    time = soon(s, "past")
    clean = f"{whose} {noun.en if noun.en == 'face' else noun.plural}"
    zh_verb = "洗了" if s.chance(0.5) else "洗"
    if zh_verb == "洗":
        return f"{subject.zh}没洗{noun.zh}。", f"{subject.en} didn't wash {clean}."
    return f"{subject.zh}{time[0]}洗了{noun.zh}。", f"{subject.en} washed {clean} {time[1]}."


@kind(1.5)
def salt_and_mistakes(s: Speaker) -> Pair:
    """What stands with few verbs only: salt in the soup, mistakes made, bridges crossed, life in the city."""
    subject = s.somebody()
    draw = s.rng.random()
    time = soon(s, "past") if s.chance(0.5) else ("", "")
    at = f" {time[1]}" if time[1] else ""
    if draw < 0.3:
        spice, dish = s.one(s.nouns(["spice"])), s.one(s.nouns(["soup", "hot_drink"]))
        return (
            f"{subject.zh}{time[0]}在{dish.zh}里放了{spice.zh}。",
            f"{subject.en} put {spice.en} in the {dish.en}{at}.",
        )
    if draw < 0.55:
        mistake = s.thing(s.nouns(["mistake"])[0], "one many this", described=False)
        return f"{subject.zh}{time[0]}犯了{mistake.zh}。", f"{subject.en} made {mistake.en}{at}."
    if draw < 0.75:
        built = s.thing(s.nouns(["built"])[0], "this the one", described=False)
        return f"{subject.zh}{time[0]}走过了{built.zh}。", f"{subject.en} walked across {built.en}{at}."
    place = s.one([p for p in s.lexicon.places if "town" in p.kinds])
    live = "lives" if subject.person == "3s" else "live"
    return f"{subject.zh}住在{place.zh}里。", f"{subject.en} {live} {place.en_where}."
