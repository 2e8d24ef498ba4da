"""The forms of sentences that are kept, in German, Spanish, French, Japanese and Chinese.

Narrower than the English ones: a rule is an infinitive ("immer … runden", "nunca borrar"), a
request ("…してください") or says "we" with a verb that is known to name a way of working, since a
story has the same words ("nunca recibimos datos"). Their subjects are not told, so that none of
them retires another.
"""

from __future__ import annotations

import re

from ipymemory.extractive.forms import Form


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_DE_WORK = (
    r"(?:verwenden|nutzen|benutzen|nehmen|runden|löschen|speichern|schreiben|rechnen|zählen|messen"
    r"|halten|behalten|arbeiten|prüfen|vergleichen|verknüpfen|zeichnen|nennen|trennen|filtern"
    r"|ändern|überschreiben|beschriften|verbinden|\w+ieren)"
)
_DE_LEAD = r"^\W*(?:(?:wichtig|regel|merke|hinweis)\s*:\s*)?(?:bitte,?\s+)?"
_DE_RULE = _re(
    rf"{_DE_LEAD}(?:(?-i:(?:Die|Den|Das|Der|Alle|die|den|das|alle)\s+(?:[a-zäöüß]+en?\s+)?"
    r"[A-ZÄÖÜ]\w+\s+))?"
    r"(?:immer|stets|nie|niemals|auf keinen fall)\s+(?!(?:wieder|mehr|noch|wenn|dann)\b)"
    r"(?:[^,.;:]*\s)?(?-i:[a-zäöüß]\w+(?:en|ern|eln))(?:\s*[,;.!].*)?$"
    rf"|^\W*wir\s+{_DE_WORK}\s+(?:immer|stets|nie|niemals|grundsätzlich)\s+.{{4,}}$"
)
_DE_USE = _re(
    r"^\W*wir\s+(?:verwenden|nutzen|benutzen|nehmen)\s+(?:[^,.;]*\s)?(?:überall|durchgehend"
    r"|ausschließlich|grundsätzlich|einheitlich|für alle\w*|statt)\b.*$"
)
_DE_DECIDED = _re(
    r"^\W*(?:(?:entscheidung|beschluss|festlegung)\s*:\s*.{8,}"
    r"|(?:wir haben|das team hat|die gruppe hat)\s+(?:beschlossen|entschieden|vereinbart)\b.{6,}"
    r"|wir haben uns\s+(?:auf|darauf|dafür|dagegen|für|gegen)\s+.{4,}(?:geeinigt|entschieden).*)$"
)
_DE_TOLD = _re(
    r"^\W*(?:laut|nach (?:auskunft|angaben?))\s+(?:(?:der|des|dem|von|vom|unserem|unserer)\s+)?"
    r"(?:\w+\s+)?\w*(?:team|kund(?:e|en|in)|hersteller|labor|abteilung|amt|auftraggeber\w*|lieferant"
    r"\w*|chef\w*|betreiber\w*)s?\s+.{10,}$"
)
_DE_TRUTH = _re(
    r"^\W*(?:die\s+)?(?:maßgebliche|verbindliche|führende)\s+quelle\s+(?:für|der|des|von)\s+.{2,60}?"
    r"\s+(?:ist|sind)\s+.{2,}$"
)
_DE_USER = _re(
    r"^\W*(?:ich bin\s+(?:(?:eine?|neu|neue)\s+)?(?-i:[A-ZÄÖÜ])\w*(?:in|er|or|ist|ent|eur|loge"
    r"|ärztin|arzt)\b|ich arbeite als\s|ich bin neu in\s|ich (?:bevorzuge|ziehe)\s"
    r"|mir sind?\s.+\slieber\s+als\s).{0,200}$"
)

_ES_LEAD = r"^\W*(?:(?:importante|regla|nota|recuerda)\s*:\s*)?(?:por favor,?\s+)?"
_ES_INFINITIVE = (
    r"(?!(?:poder|ser|estar|haber|saber|tener|ver|hay|lugar|par)\b)"
    r"\w{2,}[aeiáéí]r(?:l[oae]s?|se)?\b"
)
_ES_WORK = (
    r"(?:usamos|utilizamos|empleamos|unimos|redondeamos|borramos|eliminamos|guardamos|medimos"
    r"|contamos|comparamos|normalizamos|filtramos|agrupamos|escribimos|calculamos|trabajamos)"
)
_ES_RULE = _re(
    rf"{_ES_LEAD}(?:(?:siempre|nunca|jamás|no)\s+(?:se debe\s+|hay que\s+)?{_ES_INFINITIVE}"
    rf"|(?:siempre|nunca|jamás)\s+{_ES_WORK}\b).{{3,}}$"
)
_ES_USE = _re(
    r"^\W*(?:usamos|utilizamos|trabajamos con)\s+[^.;]*\b(?:en todas partes|en todo|para todo\w*"
    r"|siempre|nunca|en lugar de|en vez de)\b.*$"
)
_ES_DECIDED = _re(
    r"^\W*(?:(?:decisión|acuerdo)\s*:\s*.{8,}|(?:hoy\s+)?(?:decidimos|acordamos|hemos decidido"
    rf"|hemos acordado|el equipo decidió|se decidió)\s+(?:que\s|no\s+)?(?:{_ES_INFINITIVE})?"
    r".{6,})$"
)
_ES_TOLD = _re(
    r"^\W*según\s+(?:el|la|los|las|nuestr[oa])\s+(?:equipo|cliente|proveedora?|laboratorio"
    r"|departamento|oficina|fabricante|jef[ea]|responsables?|operadora?)\b[^,]*,\s*.{10,}$"
)
_ES_TRUTH = _re(
    r"^\W*(?:la\s+)?(?:única\s+)?fuente de (?:la\s+)?verdad\s+(?:de|para|sobre)\s+.{2,60}?\s+"
    r"(?:es|son)\s+.{2,}$"
)
_ES_USER = _re(
    r"^\W*(?:soy\s+(?:un\s+|una\s+)?\w+(?:log[oa]|ista|ora?|er[oa]|[ií]c[oa]|ente|ante|[oa]s?)\b"
    r"(?=\s+(?:y|de|en|del|con|nuev[oa])\s)|trabajo como\s|prefiero\s.+\s(?:a|en lugar de|antes que"
    r"|en vez de)\s).{3,200}$"
)

_FR_RULE = _re(
    r"^\W*(?:(?:important|règle|note)\s*:\s*)?(?:merci de\s+)?"
    r"(?:toujours\s+|ne\s+(?:jamais|pas)\s+)\w{2,}(?:er|ir|re)\b.{3,}$"
)
_FR_DECIDED = _re(r"^\W*(?:décision\s*:\s*.{8,}|nous avons décidé\s+(?:de|que|d['’]).{6,})$")

_JA_ASK = (
    r"(?:ください|下さい|(?:する|使う|ない|しない|た|る|う|く|す)こと|てはいけない|てはならない)"
    r"(?:[。.!！]|$)"
)
_JA_RULE = re.compile(
    rf"^\W*(?=.*(?:必ず|絶対に|決して|常に|いつも)).{{3,}}?{_JA_ASK}"
    rf"|^.{{4,}}(?:ないでください|ないで下さい|ないこと|てはいけない|てはならない)(?:[。.!！]|$)"
)
_JA_USE = re.compile(
    r"^.{2,}(?:すべて|全て|一律).{1,30}(?:使う|使います|使用する|使用します|統一する|統一します|とする"
    r"|とします)[。.]?$"
)
_JA_DECIDED = re.compile(
    r"^(?:決定|決定事項)\s*[:：].{4,}$|^.{4,}(?:ことに|と)(?:決めた|決めました|決定した|決定しました)[。.]?$"
)
_JA_TOLD = re.compile(
    r"^.{0,15}(?:チーム|先方|顧客|お客様|クライアント|担当者?|部門|研究室|上司|メーカー)によ(?:ると|れば)"
    r"、?.{5,}$"
)
_JA_TRUTH = re.compile(r"^.{1,30}の(?:正|正本|正式な情報源|信頼できる情報源)は\s*.{3,}$")
_JA_USER = re.compile(
    r"^(?:私|僕|わたし)は[^、。]{0,15}(?:者|師|士|員|学生|エンジニア|アナリスト)(?:です|で、|で[^す])"
)
_ZH_RULE = re.compile(
    r"^\W*(?:请)?(?:永远不要|绝不要?|不要|请勿|务必|一律|(?:总是|始终)(?=使用|用|以|将|把|检查|保留|先))"
    r".{4,}$"
)
_ZH_DECIDED = re.compile(r"^\W*(?:决定\s*[:：]|我们决定|团队决定).{4,}$")

FORMS = (
    *(Form("feedback", each) for each in (_DE_RULE, _ES_RULE, _FR_RULE, _JA_RULE, _ZH_RULE)),
    *(Form("user", each, from_files=False) for each in (_DE_USER, _ES_USER, _JA_USER)),
    *(Form("reference", each) for each in (_DE_TRUTH, _ES_TRUTH, _JA_TRUTH)),
    *(
        Form("project", each)
        for each in (
            *(_DE_DECIDED, _ES_DECIDED, _FR_DECIDED, _JA_DECIDED, _ZH_DECIDED),
            *(_DE_USE, _ES_USE, _JA_USE, _DE_TOLD, _ES_TOLD, _JA_TOLD),
        )
    ),
)
