"""Words that decide where a sentence ends: abbreviations with a period, by what follows, and first words of sentences.

Only what the library that cuts sentences does not know, or takes otherwise, is listed: collected from real texts, as words
with a period within a sentence, and from dictionaries of abbreviations.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Titles, and what stands before a noun, a name or a number: the sentence goes on, whatever follows.
WITHIN = {
    "": _words("Dr Prof Mr Mrs Ms St Hr Fr Sra Srta Mme Mlle vs cf Nr No Vol pp e.g i.e"),  # of languages without rules
    "en": _words("Ms Sra Srta Wm Chas Thos K-Ltd Vol Vols subsp ssp incl excl"),
    "de": _words("""
        Abg Fa Fam Fr Frl Gebr Hl Hr Hrn Ms Sra Tsch Wm abzgl akt allg amerik angebl ausschl autom bes bezgl chin dt
        durchschn ehem eigtl einschl engl entspr exkl frz gegr gem ges gesch griech inkl incl insb insbes ital jap
        kath kfm kgl lat max niederl nördl offiz orig österr poln preuß russ schwed schweiz span spez staatl städt
        stellv südl techn tsch tschech türk ungar urspr verh wg wiss wörtl zahlr zzgl zw östl westl
    """),
}
# What ends a list: a sentence ends with it where a capital letter follows.
AT_THE_END = {"en": _words("etc"), "de": _words("usw etc u.s.w")}
# Units, legal forms and the like: a sentence ends with them where a word follows that sentences begin with.
EITHER = {
    "en": frozenset(),
    "de": _words("""
        Art Co Corp Inc Jh Jhd Jr Ltd Mill Min Mio Mrd MwSt Nachf Sek Sr St Std Stk Tsd dgl ff Bd Bde Jg Str Tel b.c e.V
        n.Chr v.Chr o.ä u.a u.ä u.dgl u.v.m
    """),
}
# Of four letters and more, with numbers behind them. Other words as long end a sentence where a number follows.
BEFORE_NUMBERS = {
    "en": _words("approx Approx Bldg Bldgs Chap chap Figs figs Sect Sept Vols vols"),
    "de": _words("Abschn Anhg Anml Artt Ausg Best.-Nr Kapp Rdnr Rdnrn Sept Tabl Abbn Fign Randnr Hausnr Kontonr Telefonnr"),
}
# Words with a capital letter that are hardly ever in the middle of a sentence: none of them is a noun or a name.
STARTERS = {
    "en": _words("""
        A About After All Also Although An And Another Any Are As At Because Before Both But By Can Could Did Do Does
        During Each Every Finally First For From Had Has Have He Her Here His How However If In Into Is It Its Just
        Many Most My No Not Now Of On Once One Only Or Other Otherwise Our Over She Since So Some Such That The Their Then
        There Therefore These They This Those Through Thus To Under Until Was We Were What When Where Which While Who
        Why Will With Without You Your
    """),
    "de": _words("""
        Aber Ab Alle Allerdings Alles Als Also Am An Andere Anders Auch Auf Aus Außerdem Bei Beide Beim Bereits Bis
        Bisher Bitte Da Dabei Dadurch Dafür Dagegen Daher Damals Damit Danach Daneben Dann Daran Darauf Daraufhin
        Daraus Darin Darüber Darum Darunter Das Dass Davon Davor Dazu Dem Den Denn Dennoch Der Deren Derzeit Des
        Deshalb Dessen Deswegen Die Dies Diese Diesem Diesen Dieser Dieses Doch Dort Du Durch Ebenfalls Ebenso Ein
        Eine Einem Einen Einer Einerseits Eines Einige Er Erst Es Etwa Euer Für Gegen Gestern Haben Hat Hatte Hatten
        Hier Hierbei Hierfür Hierzu Hinter Ich Ihm Ihn Ihnen Ihr Ihre Ihrem Ihren Ihrer Im Immer In Inzwischen Ist
        Jede Jeder Jedes Jedoch Jetzt Kann Kein Keine Können Man Manche Mehr Mein Meine Mit Nach Nachdem Natürlich
        Neben Nicht Nichts Noch Nun Nur Ob Obwohl Oder Oft Ohne Schließlich Schon Sehr Sein Seine Seinem Seinen Seiner
        Seit Seitdem Sie Sind So Sobald Sodass Solange Solche Somit Sondern Sonst Sowohl Trotz Trotzdem Um Und Unser
        Unsere Unter Viele Vielmehr Vom Von Vor Wann War Waren Warum Was Weder Wegen Weil Weiter Weitere Welche Wenn
        Wer Werden Wie Wieder Wir Wird Wo Wobei Wurde Wurden Während Zu Zudem Zuerst Zum Zunächst Zur Zusätzlich Zwar
        Zwischen Über Übrigens
    """),
}
# What goes on with a time of the day: "at 5 p.m. Monday".
ZONES = _words("""
        ET EST EDT CT CST CDT MT MST MDT PT PST PDT GMT UTC BST CET CEST JST IST HKT Mon Tue Wed Thu Fri Sat Sun
        Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    """)
