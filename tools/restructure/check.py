"""Table of module moves: reads modules.txt, and checks it against the tree (sizes, collisions, circles)."""
import re,sys,collections,pathlib
from graph import G,mods,FL
PK={'node':'smg_node','mesh':'smg_mesh','storage':'smg_storage','chaos':'smg_chaos'}
def dot(path):
    parts=[x for x in path.strip('/').split('/') if x]
    return '.'.join([PK[parts[0]]]+parts[1:])
def load(fn=pathlib.Path(__file__).with_name('modules.txt')):
    M={}
    for line in open(fn):
        line=line.split('#')[0].strip()
        if not line: continue
        head,items=line.split(':',1)
        if '<' in head: tgt,src=[x.strip() for x in head.split('<')]
        else: tgt=src=head.strip()
        for it in items.split():
            if it=='*':
                s=dot(src)
                for m in mods:
                    if m.startswith(s+'.') and '.' not in m[len(s)+1:]:
                        M[m]=dot(tgt)+'.'+m.rsplit('.',1)[1]
                continue
            o,_,n=it.partition('>')
            o2=dot(src)+'.'+o; n2=dot(tgt)+'.'+(n or o)
            assert o2 in mods,('no such',o2)
            assert o2 not in M,('twice',o2)
            M[o2]=n2
    return M
if __name__=='__main__':
    M=load()
    new={m:M.get(m,m) for m in mods}
    c=collections.Counter(new.values()); assert max(c.values())==1,[k for k,v in c.items() if v>1]
    pk=set(new.values())
    # packages: existing + new
    ispkg={m for m,p in mods.items() if p.name=='__init__.py'}
    cnt=collections.Counter()
    for m,n in new.items():
        if m in ispkg: continue
        cnt[n.rsplit('.',1)[0]]+=1
    for k,v in sorted(cnt.items()):
        if v>15: print('BIG',v,k)
    # module vs package collision
    for n in new.values():
        if n in cnt and n not in ispkg: print('COLLIDE',n)
    print('moved/renamed',sum(1 for m in M if M[m]!=m),'renamed stem',sum(1 for m in M if M[m].rsplit('.',1)[1]!=m.rsplit('.',1)[1]))
    stems=collections.Counter(n.rsplit('.',1)[1] for m,n in new.items() if m not in ispkg)
    # cycles between sub-folders in each room: node = deepest folder, root modules of a room are own nodes
    def unit(n):
        parts=n.split('.')
        # room = first two, subroom = next if folder
        return '.'.join(parts[:-1]) if len(parts)>3 else n
    for tc in (False,True):
        E=collections.defaultdict(set); why=collections.defaultdict(list)
        for m,(a,b) in G.items():
            if m in ispkg: continue
            for x in (a|b if tc else a):
                if x in ispkg: continue
                u,v=unit(new[m]),unit(new[x])
                if u!=v:
                    E[u].add(v); why[u,v].append((new[m],new[x]))
        for u in list(E):
            for v in E[u]: E.setdefault(v,set()) if False else None
        allu=set(E)|{v for s in E.values() for v in s}
        E={u:E.get(u,set()) for u in allu}
        sys.setrecursionlimit(10000)
        idx={};low={};st=[];on=set();k=[0];out=[]
        def f(v):
            idx[v]=low[v]=k[0];k[0]+=1;st.append(v);on.add(v)
            for w in E[v]:
                if w not in idx:f(w);low[v]=min(low[v],low[w])
                elif w in on:low[v]=min(low[v],idx[w])
            if low[v]==idx[v]:
                comp=[]
                while True:
                    w=st.pop();on.discard(w);comp.append(w)
                    if w==v:break
                if len(comp)>1:out.append(comp)
        for v in E:
            if v not in idx:f(v)
        print('--- cycles with TYPE_CHECKING' if tc else '--- runtime cycles')
        for comp in out:
            print(len(comp),sorted(comp))
            cs=set(comp)
            # print minimal edges
            n=0
            for (u,v),ws in sorted(why.items()):
                if u in cs and v in cs and n<40:
                    n+=1; print('     ',u.split('.',1)[1],'->',v.split('.',1)[1],':',', '.join(a.split('.')[-1]+'->'+b.split('.')[-1] for a,b in ws[:5]))
