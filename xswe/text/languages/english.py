"""English: its codes and word lists."""

from __future__ import annotations

from xswe.text.languages.language import Abbreviations, Language, word_set

ENGLISH = Language(
    "en",
    "English",
    "latin",
    "eng",
    "eng-Latn",
    example="A cat sleeps.",
    boundary_stopwords=word_set("""
        a about after all also an and another any are as at be because been before between both but by can could did do does
        during each either for from had has have how however if in into is it its may might more most must no nor not of on
        only or other our over per should so some such than that the their them then there these they this those through to
        under until up us use used using via was we were what when where whether which while who will with within without
        would you your
    """),
    frequent=word_set("the of and to is that for with are it this be as not have from by you he at which"),
    general=word_set("""
        one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second third
        fourth fifth last next many much few several various another every everything everyone something someone anything
        anyone nothing nobody himself herself itself themselves myself yourself never always often sometimes usually already
        still again once twice soon later earlier now today yesterday tomorrow here away back together almost nearly just
        even quite rather very too enough less least yet ever else instead perhaps maybe although though unless since
        therefore thus hence moreover furthermore additionally alternatively otherwise meanwhile finally especially
        particularly generally currently recently previously well good better best new old long short big great little small
        large high low same different own whole able want like know think say said says make makes made take takes taken
        took get gets got go goes going went come comes came see seen saw give gives given gave put keep let seem seems
        become became means mean far near nearby further apart ahead aside forward backward inside outside around across
        along behind beyond below above beside besides toward towards upon none no-one bit called named don't doesn't can't
        won't isn't aren't wasn't didn't you're it's that's there's let's please yes okay according regarding including due
        lot lots kind thing things way ways
    """),
    leading=word_set("""
        two three four five six seven eight nine ten said says following same different next last several many much few
        various other others such certain respective above below previous current existing specific additional entire own
        new particular similar corresponding multiple
    """),
    joining=word_set("of for the"),
    pronouns=word_set("s i me my he him his she her hers us"),
    homographs=word_set("not will"),
    endings=word_set("s es ed ing ly a um us on"),
    verb_endings=word_set("ings"),
    abbreviations=Abbreviations(
        within=word_set("Ms Sra Srta Wm Chas Thos K-Ltd Vol Vols subsp ssp incl excl"),
        at_the_end=word_set("etc"),
        either=frozenset(),
        before_numbers=word_set("approx Approx Bldg Bldgs Chap chap Figs figs Sect Sept Vols vols"),
        starters=word_set("""
            A About After All Also Although An And Another Any Are As At Because Before Both But By Can Could Did Do Does
            During Each Every Finally First For From Had Has Have He Her Here His How However If In Into Is It Its Just Many
            Most My No Not Now Of On Once One Only Or Other Otherwise Our Over She Since So Some Such That The Their Then
            There Therefore These They This Those Through Thus To Under Until Was We Were What When Where Which While Who
            Why Will With Without You Your
        """),
        ordinary=word_set("me may May art Art OK sect Sect"),
    ),
)
