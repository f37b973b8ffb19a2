CREATE TABLE "conversations" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"id" VARCHAR2(64 CHAR) NOT NULL,
	"created_at" TIMESTAMP WITH TIME ZONE NOT NULL,
	"updated_at" TIMESTAMP WITH TIME ZONE NOT NULL,
	"metadata" BLOB NOT NULL,
	"version" INTEGER NOT NULL,
	"next_position" NUMBER(19) NOT NULL,
	"expires_at" TIMESTAMP WITH TIME ZONE,
	CONSTRAINT "pk_conversations" PRIMARY KEY ("tenant", "id"),
	CONSTRAINT "js_conversations_metadata" CHECK ("metadata" IS JSON)
);

CREATE INDEX "ix_conversations_expires" ON "conversations" ("expires_at");

CREATE TABLE "conversation_items" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"id" VARCHAR2(64 CHAR) NOT NULL,
	"response_id" VARCHAR2(64 CHAR),
	"item_type" VARCHAR2(64 CHAR),
	"role" VARCHAR2(16 CHAR),
	"status" VARCHAR2(16 CHAR),
	"doc" BLOB NOT NULL,
	"document_bytes" INTEGER NOT NULL,
	"refs" INTEGER NOT NULL,
	"created_at" TIMESTAMP WITH TIME ZONE NOT NULL,
	"expires_at" TIMESTAMP WITH TIME ZONE,
	CONSTRAINT "pk_conversation_items" PRIMARY KEY ("tenant", "id"),
	CONSTRAINT "js_conversation_items_doc" CHECK ("doc" IS JSON)
);

CREATE INDEX "ix_conversation_items_expires" ON "conversation_items" ("expires_at");

CREATE TABLE "conversation_item_links" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"conversation_id" VARCHAR2(64 CHAR) NOT NULL,
	"position" NUMBER(19) NOT NULL,
	"item_id" VARCHAR2(64 CHAR) NOT NULL,
	"added_at" TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT "pk_conversation_item_links" PRIMARY KEY ("tenant", "conversation_id", "position"),
	CONSTRAINT "uq_conversation_item_links_item" UNIQUE ("tenant", "conversation_id", "item_id")
);

CREATE TABLE "responses" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"id" VARCHAR2(64 CHAR) NOT NULL,
	"conversation_id" VARCHAR2(64 CHAR),
	"previous_response_id" VARCHAR2(64 CHAR),
	"depth" INTEGER NOT NULL,
	"status" VARCHAR2(16 CHAR) NOT NULL,
	"background" SMALLINT NOT NULL,
	"model" VARCHAR2(256 CHAR),
	"created_at" TIMESTAMP WITH TIME ZONE NOT NULL,
	"completed_at" TIMESTAMP WITH TIME ZONE,
	"input" BLOB NOT NULL,
	"raw_response" BLOB NOT NULL,
	"document_bytes" INTEGER NOT NULL,
	"safety_identifier" VARCHAR2(128 CHAR),
	"owner_node" VARCHAR2(256 CHAR),
	"lease_token" NUMBER(19) NOT NULL,
	"lease_until" TIMESTAMP WITH TIME ZONE,
	"cancel_requested" SMALLINT NOT NULL,
	"expires_at" TIMESTAMP WITH TIME ZONE,
	"version" INTEGER NOT NULL,
	CONSTRAINT "pk_responses" PRIMARY KEY ("tenant", "id"),
	CONSTRAINT "js_responses_input" CHECK ("input" IS JSON),
	CONSTRAINT "js_responses_raw_response" CHECK ("raw_response" IS JSON)
);

CREATE INDEX "ix_responses_expires" ON "responses" ("expires_at");

CREATE INDEX "ix_responses_leases" ON "responses" ("status", "lease_until");

CREATE INDEX "ix_responses_previous" ON "responses" ("tenant", "previous_response_id");

CREATE INDEX "ix_responses_safety" ON "responses" ("tenant", "safety_identifier", "created_at");

CREATE TABLE "item_locations" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"item_id" VARCHAR2(64 CHAR) NOT NULL,
	"response_id" VARCHAR2(64 CHAR) NOT NULL,
	"side" SMALLINT NOT NULL,
	"idx" INTEGER NOT NULL,
	CONSTRAINT "pk_item_locations" PRIMARY KEY ("tenant", "item_id")
);

CREATE INDEX "ix_item_locations_response" ON "item_locations" ("tenant", "response_id");

CREATE TABLE "response_events" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"response_id" VARCHAR2(64 CHAR) NOT NULL,
	"first_seq" INTEGER NOT NULL,
	"last_seq" INTEGER NOT NULL,
	"payload" BLOB NOT NULL,
	"expires_at" TIMESTAMP WITH TIME ZONE,
	CONSTRAINT "pk_response_events" PRIMARY KEY ("tenant", "response_id", "first_seq")
);

CREATE INDEX "ix_response_events_expires" ON "response_events" ("expires_at");

CREATE TABLE "idempotency_keys" (
	"tenant" VARCHAR2(64 CHAR) NOT NULL,
	"idem_key" VARCHAR2(128 CHAR) NOT NULL,
	"digest" BLOB NOT NULL,
	"response_id" VARCHAR2(64 CHAR),
	"expires_at" TIMESTAMP WITH TIME ZONE,
	CONSTRAINT "pk_idempotency_keys" PRIMARY KEY ("tenant", "idem_key")
);

CREATE INDEX "ix_idempotency_keys_expires" ON "idempotency_keys" ("expires_at");

CREATE TABLE smg_schema_version (
	version_num VARCHAR2(32 CHAR) NOT NULL,
	PRIMARY KEY (version_num)
);
