"""Texts that would take over a terminal, a file or a reader, each by its kind."""

HOSTILE = {
    "title-and-clear": "\x1b]0;PWNED\x07\x1b[2J\x1b[31mGREEN upheld\x1b[0m",
    "forged-line": "no\nUPHELD  G22.everything  evil\n  claim     forged",
    "carriage-return": "violated\rupheld  ",
    "nul-and-friends": "a\x00b\x0bc\x0cd\x7fe",
    "c1-csi": "\x9b31mred\x9b0m\x85next line",
    "bidi-override": "user\u202ednetxe\u202c \u2066isolate\u2069",
    "zero-width": "pay\u200bments\ufeff\u2060\u00ad",
    "joiner": "a\u200db\u200cc",
    "line-separators": "one\u2028two\u2029three\x1c\x1d\x1e",
    "lone-surrogate": "\ud800 lone \udcff",
    "not-for-xml": "\ufffe \uffff ]]> & <script>alert(1)</script>",
    "tags": "\U000e0041\U000e0042 and \U000e0001",
    "selectors": "a\ufe01b\U000e0100c",
    "filler": "a\u3164\u115f\u2800b",
    "zalgo": "o" + "\u0336\u0300" * 200,
    "markup": "[bold red]markup[/] [link=file:///etc/passwd]here[/link] :smiley:",
    "hyperlink": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "backspaces": "violated" + "\b" * 8 + "upheld  ",
    "tab": "a\tb",
    "long": "x" * 900_000,
    "long-escapes": "\x1b" * 900_000,
}
# The same texts stay as they are.
READABLE = {
    "german": "Größe: 12 €",
    "japanese": "注文\u3000キー",
    "arabic": "مفتاح الطلب",
    "hindi": "आदेश कुंजी",
    "emoji": "❤️ 🚀",
    "accents": "e\u0301 n\u0303",
    "no-break": "10\u00a0000",
    "backslash": r"C:\new\table",
}


def is_plain(text: str) -> bool:
    """Return whether a text can neither steer a terminal nor break a file of XML."""
    spaces = "\n\u00a0\u3000\u2003"
    return all(char.isprintable() or char in spaces for char in text)
