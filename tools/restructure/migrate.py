"""Move and rename modules by the table; run in the root of a clean clone."""
import ast, re, subprocess, sys, pathlib
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check import load
from graph import mods
ROOT = pathlib.Path('.')
FLOOR = {'smg_node': 'node', 'smg_mesh': 'mesh', 'smg_storage': 'storage', 'smg_chaos': 'chaos'}
M = {a: b for a, b in load().items() if a != b}
PKG = {'smg_node.packing': 'smg_node.native', 'smg_node.parsers.thoughts': 'smg_node.parsers.reasoning',
       'smg_node.parsers.joint': 'smg_node.parsers.combined', 'smg_node.routing.kv': 'smg_node.routing.kv_index',
       'smg_node.engines.h2': 'smg_node.engines.transport.h2'}
ALL = {**M, **PKG}
def path(dotted): 
    p = dotted.split('.')
    return '/'.join([FLOOR[p[0]], *p])
def git(*a): subprocess.run(['git', *a], check=True, stdout=subprocess.DEVNULL)
def ls(*pats): return subprocess.run(['git', 'ls-files', *pats], capture_output=True, text=True, check=True).stdout.split()
# 1 move
newpk = set()
for old, new in M.items():
    parts = new.split('.')
    for i in range(2, len(parts)):
        pk = '.'.join(parts[:i])
        if not (ROOT / path(pk) / '__init__.py').exists(): newpk.add(pk)
for pk in sorted(newpk):
    (ROOT / path(pk)).mkdir(parents=True, exist_ok=True)
# staged through temporary names so that a name may be taken over by another module
tmp = []
for old, new in M.items():
    for ext in ('.py', '.pxd'):
        if (ROOT / (path(old) + ext)).exists():
            t = path(new) + '.moving' + ext
            (ROOT / t).parent.mkdir(parents=True, exist_ok=True)
            git('mv', path(old) + ext, t); tmp.append((t, path(new) + ext))
for t, n in tmp: git('mv', t, n)
for old, new in PKG.items():
    o, n = path(old) + '/__init__.py', path(new) + '/__init__.py'
    git('mv', o, n); newpk.discard(new)
for pk in sorted(newpk):
    f = ROOT / path(pk) / '__init__.py'
    f.write_text(f'"""{pk.rsplit(".",1)[1].replace("_"," ").capitalize()}."""\n'); git('add', str(f))
# emptied folders would be namespace packages that import without an error
import os, shutil
for top in ('node','mesh','storage','chaos'):
    for d, subs, files in sorted(os.walk(top, topdown=False)):
        if d.count('/') > 1 and not ls(d): shutil.rmtree(d)
# 2 texts
KEYS = ALL
dotted = re.compile(r'(?<!\x00)\bsmg_(?:node|mesh|storage|chaos)(?:\.\w+)+')
slashed = re.compile(r'\b((?:node/|mesh/|storage/)?)(smg_(?:node|mesh|storage|chaos))((?:/\w+)+)')
def dot(m):
    parts = m[0].split('.')
    for i in range(len(parts), 1, -1):
        k = '.'.join(parts[:i])
        if k in KEYS: return '.'.join([KEYS[k], *parts[i:]])
    return m[0]
def slash(m):
    parts = [m[2], *m[3].strip('/').split('/')]
    for i in range(len(parts), 1, -1):
        k = '.'.join(parts[:i])
        if k in KEYS: return m[1] + '/'.join([*KEYS[k].split('.'), *parts[i:]])
    return m[0]
back = {b: a for a, b in ALL.items()}
log = []
def fix_from(text, me):
    """`from package import module`: each name that is a module goes to its new package."""
    try: tree = ast.parse(text)
    except SyntaxError: return text
    edits = []
    for x in ast.walk(tree):
        if isinstance(x, ast.ImportFrom) and x.module and any(x.module + '.' + a.name in ALL for a in x.names):
            stay, gone = [], []
            for a in x.names:
                k = x.module + '.' + a.name
                if k in ALL:
                    parent, stem = ALL[k].rsplit('.', 1)
                    alias = a.asname or (a.name if stem != a.name else None)
                    gone.append(f'from \x00{parent} import {stem}' + (f' as {alias}' if alias and alias != stem else ''))
                    if not a.asname and stem != a.name: log.append((me, a.name, stem))
                else: stay.append(a.name + (f' as {a.asname}' if a.asname else ''))
            lines = ([f'from {x.module} import ' + ', '.join(stay)] if stay else []) + gone
            edits.append((x.lineno, x.end_lineno, x.col_offset, lines))
    out = text.split('\n')
    for a, b, col, lines in sorted(edits, reverse=True):
        out[a - 1:b] = [' ' * col + l for l in lines]
    return '\n'.join(out)
SKIP = ('requirements', 'LICENSE', 'CHANGELOG')
for f in ls():
    if f.endswith(('.so', '.png', '.lock')) or f.startswith(SKIP) or not (ROOT / f).is_file(): continue
    try: text = (ROOT / f).read_text()
    except UnicodeDecodeError: continue
    new = text
    if f.endswith('.py'):
        new = fix_from(new, f)
        if f.startswith('tests/'):
            new = re.sub(r'(twins\(")([\w.]+)"', lambda m: m[1] + ALL.get('smg_node.' + m[2], 'smg_node.' + m[2]).removeprefix('smg_node.') + '"', new)
    new = dotted.sub(dot, new); new = slashed.sub(slash, new).replace('\x00', '')
    if new != text: (ROOT / f).write_text(new)
print(len(M), 'modules,', len(newpk), 'new packages,', len(log), 'aliases')
