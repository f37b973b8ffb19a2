-- conversations.get
SELECT "conversations"."id" AS id, "conversations"."created_at" AS created_at, "conversations"."updated_at" AS updated_at, "conversations"."metadata" AS metadata, "conversations"."version" AS version, "conversations"."next_position" AS next_position, "conversations"."expires_at" AS expires_at
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now);

-- conversations.lock
SELECT "conversations"."id" AS id, "conversations"."created_at" AS created_at, "conversations"."updated_at" AS updated_at, "conversations"."metadata" AS metadata, "conversations"."version" AS version, "conversations"."next_position" AS next_position, "conversations"."expires_at" AS expires_at
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" IN (__[POSTCOMPILE_ids]) ORDER BY "conversations"."id" FOR UPDATE;

-- conversations.insert
INSERT INTO "conversations" ("tenant", "id", "created_at", "updated_at", "metadata", "version", "next_position", "expires_at") VALUES (:tenant, :id, :created_at, :updated_at, :metadata, :version, :next_position, :expires_at);

-- conversations.describe
UPDATE "conversations" SET "updated_at"=:new_updated, "metadata"=:new_metadata, "version"=("conversations"."version" + :version_1) WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id;

-- conversations.grow
UPDATE "conversations" SET "updated_at"=:new_updated, "version"=:new_version, "next_position"=:new_position, "expires_at"=:new_expires WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id;

-- conversations.forget.0
UPDATE "conversation_items" SET "refs"=("conversation_items"."refs" - :refs_1) WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" IN (SELECT "conversation_item_links"."item_id"
FROM "conversation_item_links"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id);

-- conversations.forget.1
DELETE FROM "conversation_items" WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" IN (SELECT "conversation_item_links"."item_id"
FROM "conversation_item_links"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id) AND "conversation_items"."refs" <= :refs_1;

-- conversations.forget.2
DELETE FROM "conversation_item_links" WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id;

-- conversations.forget.3
DELETE FROM "conversations" WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id;

-- items.lock
SELECT "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at
FROM "conversation_items"
WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" IN (__[POSTCOMPILE_ids]) ORDER BY "conversation_items"."id" FOR UPDATE;

-- items.insert
INSERT INTO "conversation_items" ("tenant", "id", "response_id", "item_type", "role", "status", "doc", "document_bytes", "refs", "created_at", "expires_at") VALUES (:tenant, :id, :response_id, :item_type, :role, :status, :doc, :document_bytes, :refs, :created_at, :expires_at);

-- items.replace
UPDATE "conversation_items" SET "response_id"=:new_response_id, "item_type"=:new_item_type, "role"=:new_role, "status"=:new_status, "doc"=:new_doc, "document_bytes"=:new_document_bytes, "created_at"=:new_created_at, "expires_at"=:new_expires_at WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = :of_id;

-- items.use
UPDATE "conversation_items" SET "refs"=("conversation_items"."refs" + :refs_1) WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = :of_id;

-- items.leave
UPDATE "conversation_items" SET "refs"=("conversation_items"."refs" - :refs_1) WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = :of_id;

-- items.drop_unused
DELETE FROM "conversation_items" WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = :of_id AND "conversation_items"."refs" <= :refs_1;

-- items.link
INSERT INTO "conversation_item_links" ("tenant", "conversation_id", "position", "item_id", "added_at") VALUES (:tenant, :conversation_id, :position, :item_id, :added_at);

-- items.linked
SELECT "conversation_item_links"."conversation_id", "conversation_item_links"."item_id", "conversation_item_links"."position"
FROM "conversation_item_links"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" IN (__[POSTCOMPILE_conversation_ids]) AND "conversation_item_links"."item_id" IN (__[POSTCOMPILE_ids]);

-- items.unlink
DELETE FROM "conversation_item_links" WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_conversation AND "conversation_item_links"."item_id" = :of_id;

-- items.is_linked
SELECT "conversation_item_links"."position"
FROM "conversation_item_links" JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = "conversation_item_links"."item_id" JOIN "conversations" ON "conversations"."tenant" = :of_tenant AND "conversations"."id" = "conversation_item_links"."conversation_id"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_conversation AND "conversation_item_links"."item_id" = :of_id AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now);

-- items.find
SELECT keys.item, keys.inside, keys.side, keys.idx, "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at, "responses"."id" AS response, "responses"."input", "responses"."raw_response", "responses"."created_at" AS answered_at, "responses"."expires_at" AS answer_expires_at
FROM (SELECT "conversation_items"."id" AS item, NULL AS inside, 0 AS side, 0 AS idx, 0 AS place
FROM "conversation_items"
WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" IN (__[POSTCOMPILE_ids]) AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) UNION ALL SELECT "item_locations"."item_id" AS "item_id", "item_locations"."response_id" AS "response_id", "item_locations"."side" AS "side", "item_locations"."idx" AS "idx", row_number() OVER (PARTITION BY "item_locations"."response_id" ORDER BY "item_locations"."item_id") AS anon_1
FROM "item_locations"
WHERE "item_locations"."tenant" = :of_tenant AND "item_locations"."item_id" IN (__[POSTCOMPILE_ids])) keys LEFT OUTER JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = keys.item AND keys.place = :place_1 LEFT OUTER JOIN "responses" ON "responses"."tenant" = :of_tenant AND "responses"."id" = keys.inside AND keys.place = :place_2 AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now);

-- items.page.oldest
SELECT here.found, part.position, part.id, part.response_id, part.item_type, part.role, part.status, part.doc, part.document_bytes, part.refs, part.created_at, part.expires_at
FROM (SELECT "conversations"."id" AS found
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now)) here LEFT OUTER JOIN (SELECT "conversation_item_links"."position" AS position, "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at
FROM "conversation_item_links" JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = "conversation_item_links"."item_id"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) ORDER BY "conversation_item_links"."position"
 FETCH FIRST :up_to ROWS ONLY) part ON 1 = 1 ORDER BY part.position;

-- items.page.oldest_after
SELECT here.found, here.anchor, part.position, part.id, part.response_id, part.item_type, part.role, part.status, part.doc, part.document_bytes, part.refs, part.created_at, part.expires_at
FROM (SELECT "conversations"."id" AS found, (SELECT anchors."position"
FROM "conversation_item_links" anchors
WHERE anchors."tenant" = :of_tenant AND anchors."conversation_id" = :of_id AND anchors."item_id" = :after) AS anchor
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now)) here LEFT OUTER JOIN (SELECT "conversation_item_links"."position" AS position, "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at
FROM "conversation_item_links" JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = "conversation_item_links"."item_id"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) AND "conversation_item_links"."position" > (SELECT anchors."position"
FROM "conversation_item_links" anchors
WHERE anchors."tenant" = :of_tenant AND anchors."conversation_id" = :of_id AND anchors."item_id" = :after) ORDER BY "conversation_item_links"."position"
 FETCH FIRST :up_to ROWS ONLY) part ON 1 = 1 ORDER BY part.position;

-- items.page.newest
SELECT here.found, part.position, part.id, part.response_id, part.item_type, part.role, part.status, part.doc, part.document_bytes, part.refs, part.created_at, part.expires_at
FROM (SELECT "conversations"."id" AS found
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now)) here LEFT OUTER JOIN (SELECT "conversation_item_links"."position" AS position, "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at
FROM "conversation_item_links" JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = "conversation_item_links"."item_id"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) ORDER BY "conversation_item_links"."position" DESC
 FETCH FIRST :up_to ROWS ONLY) part ON 1 = 1 ORDER BY part.position DESC;

-- items.page.newest_after
SELECT here.found, here.anchor, part.position, part.id, part.response_id, part.item_type, part.role, part.status, part.doc, part.document_bytes, part.refs, part.created_at, part.expires_at
FROM (SELECT "conversations"."id" AS found, (SELECT anchors."position"
FROM "conversation_item_links" anchors
WHERE anchors."tenant" = :of_tenant AND anchors."conversation_id" = :of_id AND anchors."item_id" = :after) AS anchor
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now)) here LEFT OUTER JOIN (SELECT "conversation_item_links"."position" AS position, "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at
FROM "conversation_item_links" JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = "conversation_item_links"."item_id"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) AND "conversation_item_links"."position" < (SELECT anchors."position"
FROM "conversation_item_links" anchors
WHERE anchors."tenant" = :of_tenant AND anchors."conversation_id" = :of_id AND anchors."item_id" = :after) ORDER BY "conversation_item_links"."position" DESC
 FETCH FIRST :up_to ROWS ONLY) part ON 1 = 1 ORDER BY part.position DESC;

-- items.newest
SELECT here.found, part.position, part.known, part.id, part.response_id, part.item_type, part.role, part.status, part.doc, part.document_bytes, part.refs, part.created_at, part.expires_at
FROM (SELECT "conversations"."id" AS found
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant AND "conversations"."id" = :of_id AND ("conversations"."expires_at" IS NULL OR "conversations"."expires_at" > :now)) here LEFT OUTER JOIN (SELECT summed.position AS position, summed.known AS known, "conversation_items"."id" AS id, "conversation_items"."response_id" AS response_id, "conversation_items"."item_type" AS item_type, "conversation_items"."role" AS role, "conversation_items"."status" AS status, "conversation_items"."doc" AS doc, "conversation_items"."document_bytes" AS document_bytes, "conversation_items"."refs" AS refs, "conversation_items"."created_at" AS created_at, "conversation_items"."expires_at" AS expires_at
FROM (SELECT lately.position AS position, lately.item_id AS item_id, sum(lately."size") OVER (ORDER BY lately.position DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total, row_number() OVER (ORDER BY lately.position DESC) AS place, count(*) OVER () AS known
FROM (SELECT "conversation_item_links"."position" AS position, "conversation_item_links"."item_id" AS item_id, CAST("conversation_items"."document_bytes" AS NUMBER(19)) AS "size"
FROM "conversation_item_links" JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = "conversation_item_links"."item_id"
WHERE "conversation_item_links"."tenant" = :of_tenant AND "conversation_item_links"."conversation_id" = :of_id AND ("conversation_items"."expires_at" IS NULL OR "conversation_items"."expires_at" > :now) ORDER BY "conversation_item_links"."position" DESC
 FETCH FIRST :up_to ROWS ONLY) lately) summed JOIN "conversation_items" ON "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = summed.item_id
WHERE summed.place <= :items_max AND (summed.total <= :bytes_max OR summed.place = :place_1)) part ON 1 = 1 ORDER BY part.position DESC;

-- responses.get
SELECT "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now);

-- responses.is_there
SELECT "responses"."id"
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now);

-- responses.lock
SELECT "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."id" IN (__[POSTCOMPILE_ids]) ORDER BY "responses"."id" FOR UPDATE;

-- responses.insert
INSERT INTO "responses" ("tenant", "id", "conversation_id", "previous_response_id", "depth", "status", "background", "model", "created_at", "completed_at", "input", "raw_response", "document_bytes", "safety_identifier", "owner_node", "lease_token", "lease_until", "cancel_requested", "expires_at", "version") VALUES (:tenant, :id, :conversation_id, :previous_response_id, :depth, :status, :background, :model, :created_at, :completed_at, :input, :raw_response, :document_bytes, :safety_identifier, :owner_node, :lease_token, :lease_until, :cancel_requested, :expires_at, :version);

-- responses.replace
UPDATE "responses" SET "conversation_id"=:new_conversation_id, "previous_response_id"=:new_previous_response_id, "depth"=:new_depth, "status"=:new_status, "background"=:new_background, "model"=:new_model, "created_at"=:new_created_at, "completed_at"=:new_completed_at, "input"=:new_input, "raw_response"=:new_raw_response, "document_bytes"=:new_document_bytes, "safety_identifier"=:new_safety_identifier, "expires_at"=:new_expires_at, "version"=("responses"."version" + :version_1) WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id;

-- responses.patch
UPDATE "responses" SET "status"=:new_status, "completed_at"=:new_completed_at, "expires_at"=:new_expires_at, "version"=("responses"."version" + :version_1) WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id;

-- responses.patch_document
UPDATE "responses" SET "status"=:new_status, "completed_at"=:new_completed_at, "raw_response"=:new_raw_response, "document_bytes"=:new_document_bytes, "expires_at"=:new_expires_at, "version"=("responses"."version" + :version_1) WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id;

-- responses.forget.0
DELETE FROM "response_events" WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id;

-- responses.forget.1
DELETE FROM "item_locations" WHERE "item_locations"."tenant" = :of_tenant AND "item_locations"."response_id" = :of_id;

-- responses.forget.2
DELETE FROM "responses" WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id;

-- responses.locate
INSERT INTO "item_locations" ("tenant", "item_id", "response_id", "side", "idx") VALUES (:tenant, :item_id, :response_id, :side, :idx);

-- responses.located
SELECT "item_locations"."item_id"
FROM "item_locations"
WHERE "item_locations"."tenant" = :of_tenant AND "item_locations"."item_id" IN (__[POSTCOMPILE_ids]);

-- responses.chain
WITH chain(link, previous, total, hop) AS
(SELECT "responses"."id" AS link, "responses"."previous_response_id" AS previous, CAST("responses"."document_bytes" AS NUMBER(19)) AS total, 0 AS hop
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) UNION ALL SELECT parent."id" AS "id", parent."previous_response_id" AS "previous_response_id", CAST(chain.total + parent."document_bytes" AS NUMBER(19)) AS anon_1, chain.hop + 1 AS anon_2
FROM chain JOIN "responses" parent ON parent."tenant" = :of_tenant AND parent."id" = chain.previous
WHERE (parent."expires_at" IS NULL OR parent."expires_at" > :now) AND chain.hop < :items_max AND chain.total <= :bytes_max)
 SELECT chain.link, "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM chain LEFT OUTER JOIN "responses" ON "responses"."tenant" = :of_tenant AND "responses"."id" = chain.link AND chain.hop < :items_max AND (chain.total <= :bytes_max OR chain.hop = :hop_1) ORDER BY chain.hop;

-- responses.anchor
SELECT "responses"."created_at", "responses"."id"
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."safety_identifier" = :identifier AND "responses"."id" = :of_id AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now);

-- responses.page.oldest
SELECT "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."safety_identifier" = :identifier AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) ORDER BY "responses"."created_at", "responses"."id"
 FETCH FIRST :up_to ROWS ONLY;

-- responses.page.oldest_after
SELECT "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."safety_identifier" = :identifier AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) AND ("responses"."created_at" > :since OR "responses"."created_at" = :since AND "responses"."id" > :after) ORDER BY "responses"."created_at", "responses"."id"
 FETCH FIRST :up_to ROWS ONLY;

-- responses.page.newest
SELECT "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."safety_identifier" = :identifier AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) ORDER BY "responses"."created_at" DESC, "responses"."id" DESC
 FETCH FIRST :up_to ROWS ONLY;

-- responses.page.newest_after
SELECT "responses"."id" AS id, "responses"."conversation_id" AS conversation_id, "responses"."previous_response_id" AS previous_response_id, "responses"."depth" AS depth, "responses"."status" AS status, "responses"."background" AS background, "responses"."model" AS model, "responses"."created_at" AS created_at, "responses"."completed_at" AS completed_at, "responses"."input" AS input, "responses"."raw_response" AS raw_response, "responses"."document_bytes" AS document_bytes, "responses"."safety_identifier" AS safety_identifier, "responses"."owner_node" AS owner_node, "responses"."lease_token" AS lease_token, "responses"."lease_until" AS lease_until, "responses"."cancel_requested" AS cancel_requested, "responses"."expires_at" AS expires_at, "responses"."version" AS version
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."safety_identifier" = :identifier AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) AND ("responses"."created_at" < :since OR "responses"."created_at" = :since AND "responses"."id" < :after) ORDER BY "responses"."created_at" DESC, "responses"."id" DESC
 FETCH FIRST :up_to ROWS ONLY;

-- responses.made_for
SELECT "responses"."id", "responses"."expires_at"
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."safety_identifier" = :identifier
 FETCH FIRST :up_to ROWS ONLY;

-- runs.claim
UPDATE "responses" SET "owner_node"=:new_owner, "lease_token"=("responses"."lease_token" + :lease_token_1), "lease_until"=:new_until, "version"=("responses"."version" + :version_1) WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND "responses"."status" IN ('queued', 'in_progress') AND ("responses"."lease_until" IS NULL OR "responses"."lease_until" <= :as_of) AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) RETURNING "responses"."lease_token", "responses"."cancel_requested" INTO :ret_0, :ret_1;

-- runs.renew
UPDATE "responses" SET "lease_until"=:new_until WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND "responses"."lease_token" = :held_token AND "responses"."owner_node" = :held_by AND "responses"."status" IN ('queued', 'in_progress') AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) RETURNING "responses"."cancel_requested" INTO :ret_0;

-- runs.release
UPDATE "responses" SET "owner_node"=:new_owner, "lease_until"=:new_until WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND "responses"."lease_token" = :held_token AND "responses"."owner_node" = :held_by AND "responses"."status" IN ('queued', 'in_progress');

-- runs.orphans
SELECT "responses"."tenant", "responses"."id", "responses"."owner_node", "responses"."lease_token", "responses"."lease_until" AS lease_until, "responses"."cancel_requested"
FROM "responses"
WHERE "responses"."background" = 1 AND "responses"."status" IN ('queued', 'in_progress') AND ("responses"."lease_until" IS NULL OR "responses"."lease_until" <= :as_of) AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) ORDER BY "responses"."lease_until" NULLS FIRST, "responses"."created_at", "responses"."id"
 FETCH FIRST :up_to ROWS ONLY;

-- runs.cancel
UPDATE "responses" SET "cancel_requested"=1, "version"=("responses"."version" + :version_1) WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND "responses"."status" IN ('queued', 'in_progress');

-- events.log
SELECT "response_events"."first_seq" AS begins, "response_events"."expires_at" AS ends
FROM "response_events"
WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id AND "response_events"."first_seq" = (SELECT min(edges."first_seq") AS min_1
FROM "response_events" edges
WHERE edges."tenant" = :of_tenant AND edges."response_id" = :of_id);

-- events.held
SELECT (SELECT min(edges."first_seq") AS min_1
FROM "response_events" edges
WHERE edges."tenant" = :of_tenant AND edges."response_id" = :of_id) AS begins, (SELECT "response_events"."expires_at"
FROM "response_events"
WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id AND "response_events"."first_seq" = (SELECT min(edges."first_seq") AS min_1
FROM "response_events" edges
WHERE edges."tenant" = :of_tenant AND edges."response_id" = :of_id)) AS ends
FROM "responses"
WHERE "responses"."tenant" = :of_tenant AND "responses"."id" = :of_id AND "responses"."lease_token" = :held_token AND "responses"."status" IN ('queued', 'in_progress') AND ("responses"."expires_at" IS NULL OR "responses"."expires_at" > :now) FOR UPDATE;

-- events.forget
DELETE FROM "response_events" WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id;

-- events.append
INSERT INTO "response_events" ("tenant", "response_id", "first_seq", "last_seq", "payload", "expires_at") VALUES (:tenant, :response_id, :first_seq, :last_seq, :payload, :expires_at);

-- events.appended
SELECT "response_events"."first_seq"
FROM "response_events"
WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id AND "response_events"."first_seq" >= :from_seq AND "response_events"."first_seq" <= :to_seq;

-- events.read
SELECT summed."first_seq", summed."last_seq", summed."payload"
FROM (SELECT part."first_seq" AS "first_seq", part."last_seq" AS "last_seq", part."payload" AS "payload", sum(part."size") OVER (ORDER BY part."first_seq" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total, row_number() OVER (ORDER BY part."first_seq") AS place
FROM (SELECT "response_events"."first_seq" AS "first_seq", "response_events"."last_seq" AS "last_seq", "response_events"."payload" AS "payload", CAST(dbms_lob.getlength("response_events"."payload") AS NUMBER(19)) AS "size"
FROM "response_events"
WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id AND "response_events"."first_seq" >= coalesce((SELECT max(edges."first_seq") AS max_1
FROM "response_events" edges
WHERE edges."tenant" = :of_tenant AND edges."response_id" = :of_id AND edges."first_seq" <= :after), :after) AND "response_events"."last_seq" > :after AND ("response_events"."expires_at" IS NULL OR "response_events"."expires_at" > :now) ORDER BY "response_events"."first_seq"
 FETCH FIRST :up_to ROWS ONLY) part) summed
WHERE summed.total <= :bytes_max OR summed.place = :place_1 ORDER BY summed."first_seq";

-- keys.lock
SELECT "idempotency_keys"."idem_key" AS idem_key, "idempotency_keys"."digest" AS digest, "idempotency_keys"."response_id" AS response_id, "idempotency_keys"."expires_at" AS expires_at
FROM "idempotency_keys"
WHERE "idempotency_keys"."tenant" = :of_tenant AND "idempotency_keys"."idem_key" IN (__[POSTCOMPILE_ids]) ORDER BY "idempotency_keys"."idem_key" FOR UPDATE;

-- keys.insert
INSERT INTO "idempotency_keys" ("tenant", "idem_key", "digest", "response_id", "expires_at") VALUES (:tenant, :idem_key, :digest, :response_id, :expires_at);

-- keys.drop
DELETE FROM "idempotency_keys" WHERE "idempotency_keys"."tenant" = :of_tenant AND "idempotency_keys"."idem_key" = :of_id AND "idempotency_keys"."response_id" = :held_for;

-- keys.replace
UPDATE "idempotency_keys" SET "digest"=:new_digest, "response_id"=:new_response_id, "expires_at"=:new_expires_at WHERE "idempotency_keys"."tenant" = :of_tenant AND "idempotency_keys"."idem_key" = :of_id;

-- upkeep.expired_keys
SELECT "idempotency_keys"."tenant", "idempotency_keys"."idem_key" AS key
FROM "idempotency_keys"
WHERE "idempotency_keys"."expires_at" <= :now ORDER BY "idempotency_keys"."expires_at"
 FETCH FIRST :up_to ROWS ONLY;

-- upkeep.expired_events
SELECT "response_events"."tenant", "response_events"."response_id" AS key, "response_events"."first_seq"
FROM "response_events"
WHERE "response_events"."expires_at" <= :now ORDER BY "response_events"."expires_at"
 FETCH FIRST :up_to ROWS ONLY;

-- upkeep.expired_responses
SELECT "responses"."tenant", "responses"."id" AS key
FROM "responses"
WHERE "responses"."expires_at" <= :now ORDER BY "responses"."expires_at"
 FETCH FIRST :up_to ROWS ONLY;

-- upkeep.expired_items
SELECT "conversation_items"."tenant", "conversation_items"."id" AS key
FROM "conversation_items"
WHERE "conversation_items"."expires_at" <= :now ORDER BY "conversation_items"."expires_at"
 FETCH FIRST :up_to ROWS ONLY;

-- upkeep.expired_conversations
SELECT "conversations"."tenant", "conversations"."id" AS key
FROM "conversations"
WHERE "conversations"."expires_at" <= :now ORDER BY "conversations"."expires_at"
 FETCH FIRST :up_to ROWS ONLY;

-- upkeep.drop_key
DELETE FROM "idempotency_keys" WHERE "idempotency_keys"."tenant" = :of_tenant AND "idempotency_keys"."idem_key" = :of_id;

-- upkeep.drop_events
DELETE FROM "response_events" WHERE "response_events"."tenant" = :of_tenant AND "response_events"."response_id" = :of_id AND "response_events"."first_seq" = :at_seq;

-- upkeep.drop_item
DELETE FROM "conversation_items" WHERE "conversation_items"."tenant" = :of_tenant AND "conversation_items"."id" = :of_id;

-- upkeep.count_conversations
SELECT count(*) AS count_1
FROM "conversations";

-- upkeep.count_items
SELECT count(*) AS count_1
FROM "conversation_items";

-- upkeep.count_responses
SELECT count(*) AS count_1
FROM "responses";

-- upkeep.tenant_figures
SELECT (SELECT count(*) AS count_1
FROM (SELECT "conversations"."id" AS "id"
FROM "conversations"
WHERE "conversations"."tenant" = :of_tenant
 FETCH FIRST :counted_max ROWS ONLY) anon_1) AS conversations, (SELECT count(*) AS count_2
FROM (SELECT "conversation_items"."id" AS "id"
FROM "conversation_items"
WHERE "conversation_items"."tenant" = :of_tenant
 FETCH FIRST :counted_max ROWS ONLY) anon_2) AS items, (SELECT count(*) AS count_3
FROM (SELECT "responses"."id" AS "id"
FROM "responses"
WHERE "responses"."tenant" = :of_tenant
 FETCH FIRST :counted_max ROWS ONLY) anon_3) AS responses, (SELECT coalesce(sum(anon_4."document_bytes"), :coalesce_2) AS coalesce_1
FROM (SELECT "conversation_items"."document_bytes" AS "document_bytes"
FROM "conversation_items"
WHERE "conversation_items"."tenant" = :of_tenant ORDER BY "conversation_items"."id" DESC
 FETCH FIRST :sampled_max ROWS ONLY) anon_4) AS items_bytes, (SELECT coalesce(sum(anon_5."document_bytes"), :coalesce_4) AS coalesce_3
FROM (SELECT "responses"."document_bytes" AS "document_bytes"
FROM "responses"
WHERE "responses"."tenant" = :of_tenant ORDER BY "responses"."id" DESC
 FETCH FIRST :sampled_max ROWS ONLY) anon_5) AS responses_bytes FROM DUAL;

-- upkeep.revision
SELECT smg_schema_version.version_num
FROM smg_schema_version;

-- upkeep.stamp
INSERT INTO smg_schema_version (version_num) VALUES (:version_num);

-- upkeep.ping
SELECT 1 FROM DUAL;
