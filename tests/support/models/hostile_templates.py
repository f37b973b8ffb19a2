"""Templates that try to take the node with them: name to source.

Each makes something enormous out of something small, never ends, or reaches for what it must not
have. All of them must end in a `TemplateError`, soon and without much memory.
"""

from typing import Final

_GROW_LIST: Final = "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
_GROW_OTHER: Final = (
    "{% set ns.m = [1] %}{% for i in range(64) %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}"
)
_GROW_TUPLE: Final = "{% set ns = namespace(l=(1,)) %}{% for i in range(64) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}"
_GROW_DICT: Final = "{% set ns = namespace(l={}) %}{% for i in range(64) %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}"
_BIG: Final = "{% set big = 'a' * 3500000 %}"
_FOREVER: Final = "{% for a in range(99999) %}{% for b in range(99999) %}"

# Never ends, or not within a lifetime.
ENDLESS: Final = {
    "nested loops without output": _FOREVER
    + "{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
    "a loop whose condition is never true": _FOREVER
    + "{% for c in range(99999) if c < 0 %}{% endfor %}{% endfor %}{% endfor %}",
    "a loop over a long text": "{% set t = 'ab' * 1700000 %}{% for c in t %}{% for d in t %}{% endfor %}{% endfor %}",
    "a loop over a long text with a condition": "{% set t = 'ab' * 1700000 %}{% for d in range(9999) %}{% for c in t if c == 'x' %}{% endfor %}{% endfor %}",
    "a macro that calls itself twice": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "a macro that calls itself for ever": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "two macros that call each other": "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    "a recursive loop": "{% set t = [[1]] %}{% for x in t recursive %}{{ loop(t) }}{{ loop(t) }}{% endfor %}",
    "a call block that calls itself": "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
    "filters over nested lists": _FOREVER
    + "{% set x = range(99999)|map('string')|list %}{% endfor %}{% endfor %}",
    "a selection that finds nothing": _FOREVER
    + "{% set x = range(99999)|select('gt', 999999)|list %}{% endfor %}{% endfor %}",
    "sorting again and again": _FOREVER + "{% set x = range(99999)|sort %}{% endfor %}{% endfor %}",
    "slices without end": "{% for x in [1]|slice(10 ** 15) %}{% endfor %}",
    "searching a long text": _BIG
    + _FOREVER
    + "{% if 'b' in big %}{% endif %}{% endfor %}{% endfor %}",
    "comparing long texts": _BIG
    + "{% set other = 'a' * 3500000 %}"
    + _FOREVER
    + "{% if big == other %}{% endif %}{% endfor %}{% endfor %}",
    "counting in a long text": _BIG
    + _FOREVER
    + "{% set n = big.count('b') %}{% endfor %}{% endfor %}",
    "looking at a long text": _BIG
    + _FOREVER
    + "{% set n = big.isalpha() %}{% endfor %}{% endfor %}",
}

# Makes something enormous.
HUGE: Final = {
    "a text times a number": "{{ 'a' * 10**9 }}",
    "a number times a text": "{{ 10**9 * 'a' }}",
    "a list times a number": "{% set x = [0] * 10**9 %}",
    "a tuple times a number": "{% set x = (0,) * 10**9 %}",
    "a power": "{{ 9 ** (9 ** 9) }}",
    "a power of a small base": "{{ 2 ** (10 ** 9) }}",
    "a product that squares itself": "{% set ns = namespace(n=3) %}{% for i in range(99) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    "a range": "{% for i in range(10**12) %}{% endfor %}",
    "a long range as a list": "{% set l = range(99999)|list %}{% set ns = namespace(l=l) %}{% for i in range(64) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "a text that doubles": "{% set ns = namespace(s='aaaa') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "a text that doubles by ~": "{% set ns = namespace(s='aaaa') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "a text that doubles in a macro": "{% macro m(s) %}{{ m(s + s) }}{% endmacro %}{{ m('aaaa') }}",
    "a text that doubles in a set block": "{% set ns = namespace(s='aaaa') %}{% for i in range(64) %}{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}",
    "a text that doubles by slices": "{% set ns = namespace(s='aaaa') %}{% for i in range(64) %}{% set ns.s = (ns.s + ns.s)[:] %}{% endfor %}",
    "a text that doubles by a filter block": "{% set ns = namespace(s='aaaa') %}{% for i in range(64) %}{% set ns.s %}{% filter upper %}{{ ns.s }}{{ ns.s }}{% endfilter %}{% endset %}{% endfor %}",
    "a sum of one long text": _BIG
    + "{% set x = big + big + big + big + big + big + big + big + big + big + big + big + big %}",
    "many copies of a long text": _BIG
    + "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + [big[1:]] %}{% endfor %}",
    "many truncated copies": _BIG
    + "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + [big|truncate(3000000, true)] %}{% endfor %}",
    "many stripped copies": _BIG
    + "{% set big = ' ' + big %}{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + [big.strip()] %}{% endfor %}",
    "many reversed copies": _BIG
    + "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l + [big|reverse] %}{% endfor %}",
    "literal text in a loop": "{% for i in range(99999) %}" + "x" * 5000 + "{% endfor %}",
    "literal text in a macro's loop": "{% macro m() %}{% for i in range(99999) %}"
    + "x" * 5000
    + "{% endfor %}{% endmacro %}{% set x = m() %}",
    "a constant in a loop": "{% for i in range(99999) %}{{ '" + "x" * 5000 + "' }}{% endfor %}",
    "literal lists kept in a loop": "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l, ["
    + "0," * 4000
    + "]] %}{% endfor %}",
    "center": "{{ 'a'|center(10**9) }}",
    "the method center": "{{ 'a'.center(10**9) }}",
    "ljust": "{{ 'a'.ljust(10**9) }}",
    "rjust": "{{ 'a'.rjust(10**9) }}",
    "zfill": "{{ 'a'.zfill(10**9) }}",
    "expandtabs": "{{ ('\\t' * 1000).expandtabs(10**9) }}",
    "indent": "{{ ('a\\n' * 1000)|indent(10**9) }}",
    "indent by a text": _BIG + "{{ ('a\\n' * 100000)|indent(big) }}",
    "replace": "{{ ('a' * 100000)|replace('a', 'b' * 100000) }}",
    "replace nothing": "{{ ('a' * 100000)|replace('', 'b' * 100000) }}",
    "the method replace": "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "join": "{{ range(99999)|join('b' * 100000) }}",
    "the method join": "{{ ('b' * 100000).join(range(99999)|map('string')) }}",
    "join of one text": _BIG + "{{ ([big] * 100000)|join }}",
    "split into characters' worth of pieces": "{% set x = ('a ' * 1700000).split() %}{% set y = ('a ' * 1700000).split(' ') %}",
    "lines": "{% set x = ('\\n' * 3500000).splitlines() %}",
    "a text as a list": "{% set x = ('\\u4e00' * 3500000)|list %}",
    "a text as arguments": "{% macro m() %}{{ varargs|length }}{% endmacro %}{{ m(*('\\u4e00' * 3500000)) }}",
    "a width in %": "{{ '%1000000000d' % 1 }}",
    "a width from the values": "{{ '%*d' % (10**9, 1) }}",
    "a precision in %": "{{ '%.1000000000f' % 1 }}",
    "a precision from the values": "{{ '%.*f' % (10**9, 1) }}",
    "a width behind a strange key": "{{ '%(a(b))1000000000d' % {'a(b)': 1} }}",
    "a width in the filter format": "{{ '%1000000000d'|format(1) }}",
    "a width in format": "{{ '{:1000000000}'.format(1) }}",
    "a width nested in format": "{{ '{:{}}'.format(1, 10**9) }}",
    "a width in format_map": "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
    "a key shown many times": "{{ ('%(a)s' * 10000) % {'a': 'x' * 100000} }}",
    "a field shown many times": "{{ ('{0}' * 10000).format('x' * 100000) }}",
    "formatting by the test odd": "{{ '%1000000000d' is odd }}",
    "formatting by the test even": "{{ '%1000000000d' is even }}",
    "formatting by the test divisibleby": "{{ '%1000000000d' is divisibleby(1) }}",
    "formatting in a selection": "{{ ['%1000000000d']|select('odd')|list }}",
    "tojson indented": "{{ range(99999)|list|tojson(indent=10**6) }}",
    "tojson indented by a text": "{{ range(99999)|list|tojson(indent='a' * 100000) }}",
    "tojson with long separators": "{{ range(99999)|list|tojson(separators=('a' * 100000, ':')) }}",
    "batch": "{{ [1]|batch(10**9, 0)|list }}",
    "round": "{{ 1|round(10**9, 'ceil') }}",
    "round down": "{{ 1|round(-10**9) }}",
    "a sum of lists": "{{ ([[0] * 100000] * 10000)|sum(start=[]) }}",
    "escape": "{% set x = ('<' * 3500000)|escape %}{% set y = x ~ x %}",
    "text marked as safe that escapes": "{% set x = ''|safe %}{{ x.join(['<' * 3500000]) }}",
    "a long date": "{{ strftime_now('%Y' * 10**6) }}",
    "a list that holds itself twice, printed": _GROW_LIST + "{{ ns.l }}",
    "… by ~": _GROW_LIST + "{{ '' ~ ns.l }}",
    "… as a string": _GROW_LIST + "{{ ns.l|string }}",
    "… as JSON": _GROW_LIST + "{{ ns.l|tojson }}",
    "… in %": _GROW_LIST + "{{ '%s' % ns.l }}",
    "… in % in a tuple": _GROW_LIST + "{{ '%s' % (ns.l,) }}",
    "… in format": _GROW_LIST + "{{ '{}'.format(ns.l) }}",
    "… by conversion in format": _GROW_LIST + "{{ '{!r}'.format(ns.l) }}",
    "… by an index in format": _GROW_LIST + "{{ '{0[0]}'.format(ns.l) }}",
    "… joined": _GROW_LIST + "{{ ns.l|join }}",
    "… replaced": _GROW_LIST + "{{ ns.l|replace('1', '2') }}",
    "… in upper case": _GROW_LIST + "{{ ns.l|upper }}",
    "… as a URL": _GROW_LIST + "{{ ns.l|urlencode }}",
    "… raised": _GROW_LIST + "{{ raise_exception(ns.l) }}",
    "… is lower": _GROW_LIST + "{{ ns.l is lower }}",
    "… in a namespace": _GROW_LIST + "{{ [namespace(a=ns.l)] }}",
    "… compared": _GROW_LIST + _GROW_OTHER + "{{ ns.l == ns.m }}",
    "… ordered": _GROW_LIST + _GROW_OTHER + "{{ ns.l < ns.m }}",
    "… looked for": _GROW_LIST + _GROW_OTHER + "{{ ns.l in [ns.m] }}",
    "… tested": _GROW_LIST + _GROW_OTHER + "{{ ns.l is eq(ns.m) }}",
    "… selected": _GROW_LIST + _GROW_OTHER + "{{ [ns.l]|select('eq', ns.m)|list }}",
    "… counted": _GROW_LIST + _GROW_OTHER + "{{ [ns.l].count(ns.m) }}",
    "… indexed": _GROW_LIST + _GROW_OTHER + "{{ [ns.l].index(ns.m) }}",
    "… sorted": _GROW_LIST + _GROW_OTHER + "{{ [ns.l, ns.m]|sort }}",
    "… the largest": _GROW_LIST + _GROW_OTHER + "{{ [ns.l, ns.m]|max }}",
    "… seen changing": _GROW_LIST
    + _GROW_OTHER
    + "{% for i in [ns.l, ns.m] %}{{ loop.changed(i) }}{% endfor %}",
    "a tuple that holds itself twice, as a key": _GROW_TUPLE + "{{ {ns.l: 1} }}",
    "… as a subscript": _GROW_TUPLE + "{{ {}[ns.l] }}",
    "… got": _GROW_TUPLE + "{{ {}.get(ns.l) }}",
    "… as a dict": _GROW_TUPLE + "{{ dict([(ns.l, 1)]) }}",
    "… unique": _GROW_TUPLE + "{{ [ns.l]|unique|list }}",
    "… grouped": _GROW_TUPLE + "{{ [{'a': ns.l}]|groupby('a') }}",
    "… in a dict": _GROW_TUPLE + "{{ ns.l in {} }}",
    "a dict that holds itself twice, printed": _GROW_DICT + "{{ ns.l }}",
    "… and its items": _GROW_DICT + "{{ ns.l.items()|list }}",
    "… and its items compared": _GROW_DICT + "{{ ns.l.items() == ns.l.copy().items() }}",
    "arguments that hold themselves": "{% macro m(n) %}{% if n %}{{ m(n - 1, varargs, varargs) }}{% else %}{{ varargs }}{% endif %}{% endmacro %}{{ m(60) }}",
    "a deep list": "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
    "a deep list as JSON": "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}",
    "deep lists compared": "{% set ns = namespace(l=[], m=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
    "a namespace that holds itself": "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
}

# Reaches for what it must not have.
FORBIDDEN: Final = {
    "the class of a text": "{{ ''.__class__.__mro__ }}",
    "the class by subscript": "{{ ''['__class__'].__base__ }}",
    "the class by attr": "{{ (''|attr('__class__')).__base__ }}",
    "the class by map": "{{ (['']|map(attribute='__class__')|list)[0].__base__ }}",
    "the class by format": "{{ '{0.__class__.__base__}'.format('') }}",
    "the class by format_map": "{{ '{a.__class__.__base__}'.format_map({'a': ''}) }}",
    "the class of a message": "{{ messages[0].__class__.__base__ }}",
    "subclasses": "{{ ().__class__.__base__.__subclasses__() }}",
    "globals of a function": "{{ raise_exception.__globals__.sys }}",
    "globals of a macro": "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
    "the environment": "{{ namespace.__init__.__globals__.os }}",
    "the frame of a generator": "{{ (messages|map('upper')).gi_frame.f_back }}",
    "the loop's insides": "{% for m in messages %}{{ loop._iterable.x }}{% endfor %}",
    "the mro method": "{{ dict.mro() }}",
    "a constructor of dict": "{{ dict.fromkeys('abc') }}",
    "append": "{{ messages.append(1) }}",
    "changing a message": "{{ messages[0].update(role='system') }}",
    "emptying a message": "{{ messages[0].clear() }}",
    "taking from a message": "{{ messages[0].pop('role') }}",
    "setting a default": "{{ messages[0].setdefault('x', 1) }}",
    "sorting in place": "{{ messages.sort() }}",
    "assigning to a message": "{% set messages[0].role = 'x' %}",
    "assigning to an attribute": "{% set m = messages[0] %}{% set m.role = 'x' %}",
    "encoding": "{{ 'a'.encode() }}",
    "an integer's bytes": "{{ (1).to_bytes(10**9, 'big') }}",
    "translate": "{{ 'a'.translate({97: 'b'}) }}",
    "a file": "{% include 'secret' %}",
    "an import": "{% import 'secret' as s %}",
    "a parent": "{% extends 'secret' %}",
    "a block": "{% block a %}{{ self.a() }}{% endblock %}",
    "chance": "{{ [1, 2]|random }}",
    "placeholder text": "{{ lipsum(n=10000) }}",
    "pretty printing": "{{ messages|pprint }}",
    "an address": "{{ messages|map('upper') }}",
    "the address of a macro": "{% macro m() %}{% endmacro %}{{ m }}",
    "calling a text": "{{ 'a'() }}",
    "calling a number": "{{ 5() }}",
    "a half surrogate": "{{ '\\ud800' }}",
}

# Cannot be compiled, or not soon.
SOURCES: Final = {
    "a power at compile time": "{% set x = 9 ** (9 ** (9 ** 9)) %}",
    "many brackets": "{{ " + "(" * 10000 + "1" + ")" * 10000 + " }}",
    "many lists": "{{ " + "[" * 10000 + "]" * 10000 + " }}",
    "a long chain of attributes": "{{ a" + ".a" * 20000 + " }}",
    "a long sum": "{{ 1" + "+1" * 20000 + " }}",
    "a long disjunction": "{{ 1" + " or 1" * 20000 + " }}",
    "many minus signs": "{{ " + "-" * 20000 + "1 }}",
    "many nots": "{{ " + "not " * 10000 + "1 }}",
    "many filters": "{{ 1" + "|abs" * 20000 + " }}",
    "deeply nested loops": "{% for a in [1] %}" * 500 + "{% endfor %}" * 500,
    "deeply nested conditions": "{% if 1 %}" * 500 + "{% endif %}" * 500,
    "a long integer": "{{ " + "9" * 60000 + " }}",
    "too many parts": "{{a}}" * 60000,
    "an unclosed tag": "{% if true %}",
    "an unknown tag": "{% spam %}",
    "an unknown filter": "{{ 1|spam }}",
    "break outside a loop": "{% break %}",
    "a keyword as an argument twice": "{% macro m(a, a) %}{% endmacro %}",
    "a reserved name": "{% set none = 1 %}",
    "an unclosed comment": "{#" * 20000,
    "an unclosed text": "{{ '" + "a" * 20000,
    "binary": "\x00\x01{{\x00}}",
}
