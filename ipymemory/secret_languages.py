"""What a password and a key are called in other languages, in letters without marks.

`secret_disguises` spells a name in other letters as one of these. A word that is also an ordinary
one of its language (``parola``, a word in Italian) counts only where the value is no word at all.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PASSWORDS = _words(
    "passworte passworter kennwort kennworter kennworte contrasena contrasenas contrasenya senha "
    "senhas mdp losenord wachtwoord wachtwoorden haslo heslo geslo jelszo salasana passord "
    "adgangskode sifre motdepasse lozinka zaporka parool slaptazodis contrasinal pasahitza "
    "lykilord pasvorto katasandi matkhau"
)
"""Words that mean nothing else."""

UNSURE = _words("parola parole parol")
"""Words that also mean another thing."""

PHRASES = _words("depasse depase palavrapasse katasandi matkhau")
"""The last two words of a phrase in one: ``mot de passe``, ``palavra-passe``."""

KEYS = _words(
    "cle clef clave chave chiave schlussel schluessel ficha sleutel nyckel nokkel "
    "klucz klic kulcs avain anahtar kunci kljuc"
)
"""Words for a key, of which ``api`` before or behind makes a secret."""

SECRET = _words("secreta secrete secreto segreta segreto secreti geheim geheimer geheime tajny")
"""Words for secret, beside one for a key."""

STEMS = (
    *("kennwort", "contrasen", "mdp", "senha", "losenord", "wachtwoord", "slo", "jelszo"),
    *("salasana", "adgangskode", "sifre", "clave", "chave", "geheim", "lozink", "zaporka"),
    *("parol", "parool", "slaptaz", "contrasinal", "pasahitza", "lykilord", "pasvorto"),
    *("kata sandi", "katasandi", "kata_sandi", "mat_khau", "cle_api", "chiave", "schlussel"),
    *("schluessel",),
)
"""What every such name holds, in lower case; `slo` is the end of `haslo`, `heslo` and `geslo`."""

FORM_WORDS = _words(
    "obligatoire facultatif facultative requis requise oublie incorrect incorrecte invalide "
    "manquant vide erforderlich falsch ungultig vergessen leer fehlt optional obligatorio "
    "obligatoria requerido requerida incorrecta incorrecto olvidada vacia invalida invalido "
    "obrigatorio obrigatoria vazia esquecida obbligatoria obbligatorio errata mancante vuota "
    "verplicht onjuist vergeten wymagane bledne povinne chybne pakollinen kotelezo"
)
"""What forms say of a password: that it is required, wrong, forgotten."""
