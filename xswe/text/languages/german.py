"""German: its codes and word lists."""

from __future__ import annotations

from xswe.text.languages.language import Abbreviations, Language, word_set

GERMAN = Language(
    "de",
    "German",
    "latin",
    "deu",
    "deu-Latn",
    example="Eine Katze schläft.",
    boundary_stopwords=word_set("""
        ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bis da damit dann das dass
        dem den denen der deren des dessen die dies diese diesem diesen dieser dieses doch durch ein eine einem einen einer
        eines er es für gegen haben hat hier ihr ihre ihrem ihren ihrer ihres im in indem ins ist jede jedem jeden jeder
        jedes kann keine keinen können man mehr mehrere mit müssen muss nach nicht noch nur ob oder ohne pro sein seine sich
        sie sind so sodass sollte sollten über um und unter vom von vor war was wenn werden wie wird wo wurde wurden zu zum
        zur zwischen
    """),
    frequent=word_set("""
        der das und ist nicht den mit von zu ein eine auf für sich des dem im auch wird sind es als bei
    """),
    general=word_set("""
        ein eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend millionen milliarden erste ersten
        erster erstes zweite zweiten zweiter dritte dritten letzte letzten letzter letztes nächste nächsten nächster viele
        vielen vieler viel wenig wenige einige einigen einiger etwas nichts niemand jemand selbst nie niemals immer oft
        manchmal bereits schon wieder einmal bald später früher jetzt heute gestern morgen zurück zusammen fast sogar ganz
        sehr genug weniger jemals sonst stattdessen vielleicht obwohl daher deshalb somit außerdem zudem darüber alternativ
        andernfalls inzwischen schließlich insbesondere besonders allgemein derzeit kürzlich zuvor gut gute guten besser neu
        neue neuen neuer neues alt alte alten lang lange langen kurz groß große großen klein kleine kleinen hoch hohe hohen
        gleich gleiche gleichen verschiedene verschiedenen eigene eigenen möchten wollen weiß wissen denken sagen sagt sagte
        machen macht gemacht nehmen gehen geht ging kommen kommt kam sehen geben gibt gab bekommen scheint bedeutet gemäß
        einschließlich aufgrund bitte ja nein weit nahe meist meistens namens vorwärts rückwärts innerhalb außerhalb
        unterhalb oberhalb neben hinter kaum lediglich bisschen
    """),
    leading=word_set("""
        zwei drei vier fünf sechs sieben acht neun zehn sagte sagt folgende folgenden folgender folgendes folgendem gleiche
        gleichen gleicher gleiches verschiedene verschiedenen verschiedener nächste nächsten nächster nächstes letzte
        letzten letzter letztes viele vielen vieler mehrere mehreren weitere weiteren weiterer weiteres bestimmte bestimmten
        bestimmter bestimmtes jeweilige jeweiligen jeweiliger obige obigen vorherige vorherigen aktuelle aktuellen
        vorhandene vorhandenen zusätzliche zusätzlichen gesamte gesamten eigene eigenen neue neuen neuer neues ähnliche
        ähnlichen entsprechende entsprechenden spezifische spezifischen
    """),
    joining=word_set("der die das des dem den für von vom zu zum zur"),
    pronouns=word_set("ich mir mich mein meine meinen dir dich dein wir uns"),
    homographs=word_set("den hat man war"),
    endings=word_set("e en n er ern s es ens ns nen em ien o a um us on"),
    verb_endings=word_set("t te ten tet tes ter est et end ende enden ender endes"),
    abbreviations=Abbreviations(
        within=word_set("""
            Abg Fa Fam Fr Frl Gebr Hl Hr Hrn Ms Sra Tsch Wm abzgl akt allg amerik angebl ausschl autom bes bezgl chin dt
            durchschn ehem eigtl einschl engl entspr exkl frz gegr gem ges gesch griech inkl incl insb insbes ital jap kath
            kfm kgl lat max niederl nördl offiz orig österr poln preuß russ schwed schweiz span spez staatl städt stellv
            südl techn tsch tschech türk ungar urspr verh wg wiss wörtl zahlr zzgl zw östl westl
        """),
        at_the_end=word_set("usw etc u.s.w"),
        either=word_set("""
            Art Co Corp Inc Jh Jhd Jr Ltd Mill Min Mio Mrd MwSt Nachf Sek Sr St Std Stk Tsd dgl ff Bd Bde Jg Str Tel b.c e.V
            n.Chr v.Chr o.ä u.a u.ä u.dgl u.v.m
        """),
        before_numbers=word_set("""
            Abschn Anhg Anml Artt Ausg Best.-Nr Kapp Rdnr Rdnrn Sept Tabl Abbn Fign Randnr Hausnr Kontonr Telefonnr
        """),
        starters=word_set("""
            Aber Ab Alle Allerdings Alles Als Also Am An Andere Anders Auch Auf Aus Außerdem Bei Beide Beim Bereits Bis
            Bisher Bitte Da Dabei Dadurch Dafür Dagegen Daher Damals Damit Danach Daneben Dann Daran Darauf Daraufhin Daraus
            Darin Darüber Darum Darunter Das Dass Davon Davor Dazu Dem Den Denn Dennoch Der Deren Derzeit Des Deshalb Dessen
            Deswegen Die Dies Diese Diesem Diesen Dieser Dieses Doch Dort Du Durch Ebenfalls Ebenso Ein Eine Einem Einen
            Einer Einerseits Eines Einige Er Erst Es Etwa Euer Für Gegen Gestern Haben Hat Hatte Hatten Hier Hierbei Hierfür
            Hierzu Hinter Ich Ihm Ihn Ihnen Ihr Ihre Ihrem Ihren Ihrer Im Immer In Inzwischen Ist Jede Jeder Jedes Jedoch
            Jetzt Kann Kein Keine Können Man Manche Mehr Mein Meine Mit Nach Nachdem Natürlich Neben Nicht Nichts Noch Nun
            Nur Ob Obwohl Oder Oft Ohne Schließlich Schon Sehr Sein Seine Seinem Seinen Seiner Seit Seitdem Sie Sind So
            Sobald Sodass Solange Solche Somit Sondern Sonst Sowohl Trotz Trotzdem Um Und Unser Unsere Unter Viele Vielmehr
            Vom Von Vor Wann War Waren Warum Was Weder Wegen Weil Weiter Weitere Welche Wenn Wer Werden Wie Wieder Wir Wird
            Wo Wobei Wurde Wurden Während Zu Zudem Zuerst Zum Zunächst Zur Zusätzlich Zwar Zwischen Über Übrigens
        """),
        ordinary=word_set("mich mag bart Bart OK"),
    ),
)
