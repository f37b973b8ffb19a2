-- Conversations, and which items they have at which positions.
--
-- conv:<id>   c created, u updated, m metadata, v version, x end, n last position
-- items:<id>  position -> item id, followed by the item's thread if that is another one; it stays when its conversation
--             is over, until a sweep has let go of all items in it
-- trash:<id>  items of one that was deleted, until all of them are let go

local CONVERSATION = { 'c', 'u', 'm', 'v', 'x' }
local SWEEP = 500

local function member(a, item)
  if item.t == a.ct then
    return item.i
  end
  return item.i .. ' ' .. item.t
end

local function item_of(a, text)
  local id, thread = text:match('^(.*) (%x+)$')
  if id then
    return { i = id, t = thread }
  end
  return { i = text, t = a.ct }
end

local function conversation(a)
  local k = key(a, a.ct, 'conv', a.c)
  if not live(a, k) then
    return nil
  end
  return call('HMGET', k, unpack(CONVERSATION))
end

local function append_refusal(a)
  if not live(a, key(a, a.ct, 'conv', a.c)) then
    return no('missing', a.c)
  end
  local refusal = items_refusal(a)
  if refusal then
    return refusal
  end
  local fresh = {}
  for _, item in ipairs(a.items) do
    fresh[item.i] = true
  end
  for _, link in ipairs(a.links) do
    if here(a, link.t) and not fresh[link.i] and not live(a, item_key(a, link)) then
      return no('missing', link.i)
    end
  end
  if call('ZCARD', key(a, a.ct, 'items', a.c)) + #a.links > LINKS_MAX then
    return no('full', a.c)
  end
  return nil
end

-- The oldest of a conversation may be over while it goes on; links to them are dropped a few at a time.
local function trim(a, zk)
  for _, text in ipairs(call('ZRANGE', zk, 0, 3)) do
    local item = item_of(a, text)
    if not here(a, item.t) or live(a, item_key(a, item)) then
      return
    end
    call('ZREM', zk, text)
  end
end

local function append(a)
  local ck, zk = key(a, a.ct, 'conv', a.c), key(a, a.ct, 'items', a.c)
  keep_items(a)
  local positions, added = {}, 0
  for number, link in ipairs(a.links) do
    local text = member(a, link)
    local position = call('ZSCORE', zk, text)
    if not position then
      position = call('HINCRBY', ck, 'n', 1)
      call('ZADD', zk, position, text)
      added = added + 1
      if here(a, link.t) then
        refer(a, link, a.c)
      end
    end
    positions[number] = tonumber(position)
  end
  if added > 0 then
    call('HINCRBY', ck, 'v', added)
    call('HSET', ck, 'u', a.at)
    local x = call('HGET', ck, 'x')
    if tonumber(x) > 0 and tonumber(a.ends) > tonumber(x) then
      count(a, x, 'c', -1, 0)
      count(a, a.ends, 'c', 1, 0)
      x = a.ends
      call('HSET', ck, 'x', x)
    end
    lasts(a, ck, x)
    trim(a, zk)
  end
  return positions
end

function F.append(a)
  local refusal = append_refusal(a)
  if refusal then
    return refusal
  end
  return { 'ok', append(a) }
end

-- Whether items could be appended, and why not.
function F.append_check(a)
  return append_refusal(a) or { 'ok' }
end

function F.positions(a)
  local positions = {}
  for _, link in ipairs(a.links) do
    local position = call('ZSCORE', key(a, a.ct, 'items', a.c), member(a, link))
    if position then
      positions[#positions + 1] = tonumber(position)
    end
  end
  return { 'ok', positions }
end

-- The items of a conversation that is gone wait for being let go.
local function discard(a)
  local ck, zk, trash = key(a, a.ct, 'conv', a.c), key(a, a.ct, 'items', a.c), key(a, a.ct, 'trash', a.c)
  local x = call('HGET', ck, 'x')
  if x then
    count(a, x, 'c', -1, 0)
    call('DEL', ck)
  end
  if call('EXISTS', zk) == 1 then
    call('ZUNIONSTORE', trash, 2, trash, zk)
    call('DEL', zk)
  end
end

function F.conv_new(a)
  local k = key(a, a.ct, 'conv', a.c)
  local row = conversation(a)
  if row then
    if row[1] ~= a.created or row[3] ~= a.v[a.m] then
      return no('clash', a.c)
    end
    return { 'ok', row }
  end
  discard(a)
  call('HSET', k, 'c', a.created, 'u', a.updated, 'm', a.v[a.m], 'v', a.version, 'x', a.x, 'n', 0)
  lasts(a, k, a.x)
  count(a, a.x, 'c', 1, 0)
  return { 'ok', conversation(a) }
end

function F.conv_get(a)
  local row = conversation(a)
  return row and { 'ok', row } or { 'none' }
end

function F.conv_update(a)
  local k = key(a, a.ct, 'conv', a.c)
  local row = conversation(a)
  if not row then
    return { 'none' }
  end
  if row[3] == a.v[a.m] then
    return { 'ok', row }
  end
  if a.if_version and row[4] ~= a.if_version then
    return no('version', a.c)
  end
  call('HSET', k, 'm', a.v[a.m], 'u', a.at)
  call('HINCRBY', k, 'v', 1)
  return { 'ok', conversation(a) }
end

-- Live items from a position on: position, id (and thread), packed ('' for one of another slot).
local function collect(a, from, want, bytes_max)
  local zk, out, count, bytes = key(a, a.ct, 'items', a.c), {}, 0, 0
  local window = math.min(want + 1, SWEEP)
  while true do
    local part
    if a.newest then
      part = call('ZREVRANGEBYSCORE', zk, from and '(' .. from or '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, window)
    else
      part = call('ZRANGEBYSCORE', zk, from and '(' .. from or '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, window)
    end
    for at = 1, #part, 2 do
      local item, packed, size = item_of(a, part[at]), '', 0
      if here(a, item.t) then
        local row = call('HMGET', item_key(a, item), 'b', 'n', 'x')
        packed = row[1] and not over(a, row[3]) and row[1]
        size = tonumber(row[2] or '0')
      end
      if packed then
        bytes = bytes + size
        if count == want or (count > 0 and bytes_max and bytes > bytes_max) then
          return { 'ok', 1, bundle(out) }
        end
        count = count + 1
        out[#out + 1] = part[at + 1]
        out[#out + 1] = part[at]
        out[#out + 1] = packed
      end
      from = part[at + 1]
    end
    if #part < 2 * window then
      return { 'ok', 0, bundle(out) }
    end
  end
end

function F.page(a)
  if not live(a, key(a, a.ct, 'conv', a.c)) then
    return { 'none' }
  end
  local from = nil
  if a.after then
    from = call('ZSCORE', key(a, a.ct, 'items', a.c), member(a, a.after))
    if not from then
      return no('missing', a.after.i)
    end
  end
  return collect(a, from, a.limit, a.bytes_max)
end

function F.linked(a)
  local there = live(a, key(a, a.ct, 'conv', a.c))
    and call('ZSCORE', key(a, a.ct, 'items', a.c), member(a, a.item))
    and (not here(a, a.item.t) or live(a, item_key(a, a.item)))
  return { 'ok', there and 1 or 0 }
end

function F.unlink(a)
  local ck = key(a, a.ct, 'conv', a.c)
  if not live(a, ck) or call('ZREM', key(a, a.ct, 'items', a.c), member(a, a.item)) == 0 then
    return { 'ok', 0 }
  end
  call('HINCRBY', ck, 'v', 1)
  if here(a, a.item.t) then
    unrefer(a, a.item, a.c)
  end
  return { 'ok', 1 }
end

-- Let go of some items of a deleted conversation; those of other slots are answered, and come back in `a.done`.
-- Also answered is how many are left, and how many were let go.
local function sweep(a)
  local trash, zk = key(a, a.ct, 'trash', a.c), key(a, a.ct, 'items', a.c)
  local gone = 0
  for _, item in ipairs(a.done or {}) do
    gone = gone + call('ZREM', trash, member(a, item))
  end
  local foreign = {}
  for _, text in ipairs(call('ZRANGE', trash, 0, SWEEP - 1)) do
    local item = item_of(a, text)
    local again = call('ZSCORE', zk, text) -- one of the same id was made meanwhile, and has it too
    if again or here(a, item.t) then
      if not again then
        unrefer(a, item, a.c)
      end
      gone = gone + call('ZREM', trash, text)
    else
      foreign[#foreign + 1] = text
    end
  end
  return foreign, call('ZCARD', trash), gone
end

function F.conv_sweep(a)
  return { 'ok', 0, sweep(a) }
end

-- The same for one that may be over: what is left of it goes, if it is.
function F.conv_over(a)
  if live(a, key(a, a.ct, 'conv', a.c)) then
    return { 'ok', 0, {}, 0, 0 }
  end
  discard(a)
  return { 'ok', 0, sweep(a) }
end

function F.conv_delete(a)
  local there = live(a, key(a, a.ct, 'conv', a.c))
  discard(a)
  return { 'ok', there and 1 or 0, sweep(a) }
end
