BEGIN TRANSACTION;
CREATE TABLE agents (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	state TEXT NOT NULL, 
	mode TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	manifest TEXT NOT NULL, 
	pinned_model TEXT, 
	created_at REAL NOT NULL, 
	updated_at REAL NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "agents" VALUES('69f31809-83e0-4ed6-8e99-e4ee829341ca','ada','Running','Stable','308a8a71-f192-40cd-999b-ac5d00a67b63','{"name":"ada","description":"Kept by an earlier release.","capabilities":{"network":["*"],"tools":["agent_call","agent_list","calculate","file_list","file_read","file_write","kv_get","kv_set","system_time","web_fetch"],"memory_read":["*"],"memory_write":["self.*"],"agent_message":["*"]}}','["scripted","scripted-model"]',1767225600.0,1767225600.0);
INSERT INTO "agents" VALUES('c13037bc-e466-439b-bc07-baae367c53f4','bob','Running','Normal','4b340490-94ce-4d26-9344-877047da554e','{"name":"bob","capabilities":{"network":["*"],"tools":["agent_call","agent_list","calculate","file_list","file_read","file_write","kv_get","kv_set","system_time","web_fetch"],"memory_read":["*"],"memory_write":["self.*"],"agent_message":["*"]}}',NULL,1767225600.0,1767225600.0);
CREATE TABLE job (
	id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	state TEXT NOT NULL, 
	due FLOAT NOT NULL, 
	owner TEXT, 
	epoch INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	result TEXT, 
	error TEXT, 
	created_at FLOAT NOT NULL, 
	updated_at FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
CREATE TABLE kv (
	namespace TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	updated_at FLOAT NOT NULL, 
	PRIMARY KEY (namespace, "key")
);
INSERT INTO "kv" VALUES('69f31809-83e0-4ed6-8e99-e4ee829341ca','self.colour','{"name":"blué"}',1,'10b414cdeca7f6589bae41383d8e92cebee649a0e5ab89288caf74ff3f0468b2',1767225600.0);
INSERT INTO "kv" VALUES('shared','shared.plan','[1,null]',1,'28f6766b5fb80e872afcf27841930088024e6e9fd95a0a0d8df076b911376978',1767225600.0);
CREATE TABLE messages (
	session_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	turn_id TEXT, 
	role TEXT NOT NULL, 
	parts TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	partial INTEGER NOT NULL, 
	created_at REAL NOT NULL, 
	PRIMARY KEY (session_id, seq)
)
 WITHOUT ROWID

;
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',0,'928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','user','[{"type":"text","text":"remember blue"}]','1c4e452275a4391490916047903fbb45fd3c80e24abd03141ea8fced47aec596',0,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',1,'928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','assistant','[{"type":"tool_use","id":"call_1","name":"kv_set","arguments":{"key":"self.colour","value":{"name":"blué"}},"opaque":{}}]','3b7ba94830eb5359950424e84e3279449efda3237a1cd9dd14ba0e430cb454fc',0,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',2,'928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','tool','[{"type":"tool_output","id":"call_1","name":"kv_set","text":"remembered self.colour","is_error":false}]','bbb0fa56e18db5c5a54a06ae37b7d62c3849f4ce457da75dbc8da3ffa9c37e74',0,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',3,'928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','assistant','[{"type":"text","text":"I keep it."}]','5999fa687f8ceea627e70de6da6ef36d32334ae651ac42e6c8785ab846d7dd9b',0,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',4,'33107772-ace1-45c4-9126-4f5d5f40faa1','user','[{"type":"text","text":"count"}]','4a47ba616fbe861e15f216fb2fe8a613b098813e9c3b238628712150fc233f77',0,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',5,'33107772-ace1-45c4-9126-4f5d5f40faa1','assistant','[{"type":"text","text":"half"}]','b6bdf23dec3f6b745d2ba65db98c642dd040bbf2815ff3138396e605ac7e96ec',1,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',6,'turn-once','user','[{"type":"text","text":"once"}]','b08e9d637898cf56eea7c6796cab050dc7ed6488affd1800cc86eda92dae6ea9',0,1767225600.0);
INSERT INTO "messages" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63',7,'turn-once','assistant','[{"type":"text","text":"You said: once"}]','3ef7c164913d128117801a47d586d543572e232115fd56c2023eacd699685970',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',0,'ef7e6064-6b4c-449f-9912-5cfcd8c7fddb','user','[{"type":"text","text":"word 0"}]','b532f0c9051ce0539e6d9b8c5addf7c14b167ff0898b2f45ffdc78c05e81dc0e',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',1,'ef7e6064-6b4c-449f-9912-5cfcd8c7fddb','assistant','[{"type":"text","text":"You said: word 0"}]','5a549f1dd63802f78109f21276e80591c5bd6ace81fd3955c209dffe0faa3ab3',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',2,'71975664-dbdd-4ecc-9f55-40f0f633d890','user','[{"type":"text","text":"word 1"}]','f7f2a4f4d33ae6d4c9ecc8baeda24c1b1c58d0425a0131dea2169197414680d9',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',3,'71975664-dbdd-4ecc-9f55-40f0f633d890','assistant','[{"type":"text","text":"You said: word 1"}]','e524efb256d50b5e72ae90ad72cec094be52e00d5339ed2b9f4003802a5421fe',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',4,'d7c794be-b677-43ef-95e0-a84f8f06ccb9','user','[{"type":"text","text":"word 2"}]','277cc6850d8795e7380069585c647956b9f7e1f5738d3060ef2a3abefcb2966a',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',5,'d7c794be-b677-43ef-95e0-a84f8f06ccb9','assistant','[{"type":"text","text":"You said: word 2"}]','ac635cf5b9dcf85bc1b8b4449abb093f751788fda176773a42963e4c3df9363d',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',6,'b11154c0-79d5-4ab8-865d-c958ec8d6aaf','user','[{"type":"text","text":"word 3"}]','4089df98fad349937c49751524a0d53694681be1afefaf2e1a19219f57abda13',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',7,'b11154c0-79d5-4ab8-865d-c958ec8d6aaf','assistant','[{"type":"text","text":"You said: word 3"}]','7358742e2bd2be399fd65985c5130f20cc7df3c92e8768e756c5a5e71a31726f',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',8,'fd5e2887-a1af-4d70-bd4e-312b78ab8f48','user','[{"type":"text","text":"after"}]','88a1462b478e05580627a1797862fe3825cd337032ffc8ca2a32dccc6780cefa',0,1767225600.0);
INSERT INTO "messages" VALUES('4b340490-94ce-4d26-9344-877047da554e',9,'fd5e2887-a1af-4d70-bd4e-312b78ab8f48','assistant','[{"type":"text","text":"You said: after"}]','43eb11d29177e8bc17c0541153507cb570a43512bc93f4eacb31f801349565bd',0,1767225600.0);
CREATE TABLE schema_versions (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "schema_versions" VALUES('kernel',0);
INSERT INTO "schema_versions" VALUES('kv',0);
INSERT INTO "schema_versions" VALUES('jobs',0);
CREATE TABLE sessions (
	id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	ephemeral INTEGER NOT NULL, 
	thinking INTEGER NOT NULL, 
	message_count INTEGER NOT NULL, 
	first_seq INTEGER NOT NULL, 
	next_seq INTEGER NOT NULL, 
	summary TEXT, 
	created_at REAL NOT NULL, 
	updated_at REAL NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "sessions" VALUES('308a8a71-f192-40cd-999b-ac5d00a67b63','69f31809-83e0-4ed6-8e99-e4ee829341ca',0,1,7,0,8,NULL,1767225600.0,1767225600.0);
INSERT INTO "sessions" VALUES('4b340490-94ce-4d26-9344-877047da554e','c13037bc-e466-439b-bc07-baae367c53f4',0,0,5,6,10,'[{"type":"text","text":"Summary of the conversation so far:\n\nYou said: Summarize this conversation:\n\nuser: word 0\nassistant: You said: word 0\nuser: word 1\nassistant: You said: word 1\nuser: word 2\nassistant: You said: word 2"}]',1767225600.0,1767225600.0);
CREATE TABLE step (
	job TEXT NOT NULL, 
	name TEXT NOT NULL, 
	output TEXT NOT NULL, 
	PRIMARY KEY (job, name), 
	FOREIGN KEY(job) REFERENCES job (id) ON DELETE CASCADE
);
CREATE TABLE store_marks (
	name TEXT NOT NULL, 
	value INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "store_marks" VALUES('closed_cleanly',1);
CREATE TABLE tool_calls (
	turn_id TEXT NOT NULL, 
	call_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	arguments TEXT NOT NULL, 
	state TEXT NOT NULL, 
	created_at REAL NOT NULL, 
	ended_at REAL, 
	PRIMARY KEY (turn_id, call_id)
);
INSERT INTO "tool_calls" VALUES('928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','call_1','308a8a71-f192-40cd-999b-ac5d00a67b63','kv_set','{"key":"self.colour","value":{"name":"blué"}}','committed',1767225600.0,1767225600.0);
CREATE TABLE turns (
	id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	agent_id TEXT NOT NULL, 
	state TEXT NOT NULL, 
	response TEXT, 
	error TEXT, 
	error_code TEXT, 
	iterations INTEGER NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cost_micro_usd INTEGER NOT NULL, 
	started_at REAL NOT NULL, 
	ended_at REAL, 
	PRIMARY KEY (id)
);
INSERT INTO "turns" VALUES('928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','308a8a71-f192-40cd-999b-ac5d00a67b63','69f31809-83e0-4ed6-8e99-e4ee829341ca','done','I keep it.',NULL,NULL,2,110,12,134,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('33107772-ace1-45c4-9126-4f5d5f40faa1','308a8a71-f192-40cd-999b-ac5d00a67b63','69f31809-83e0-4ed6-8e99-e4ee829341ca','cancelled','half','the turn was stopped: stopped by a test','cancelled',1,0,0,0,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('turn-once','308a8a71-f192-40cd-999b-ac5d00a67b63','69f31809-83e0-4ed6-8e99-e4ee829341ca','done','You said: once',NULL,NULL,1,10,5,20,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('ef7e6064-6b4c-449f-9912-5cfcd8c7fddb','4b340490-94ce-4d26-9344-877047da554e','c13037bc-e466-439b-bc07-baae367c53f4','done','You said: word 0',NULL,NULL,1,10,5,20,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('71975664-dbdd-4ecc-9f55-40f0f633d890','4b340490-94ce-4d26-9344-877047da554e','c13037bc-e466-439b-bc07-baae367c53f4','done','You said: word 1',NULL,NULL,1,10,5,20,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('d7c794be-b677-43ef-95e0-a84f8f06ccb9','4b340490-94ce-4d26-9344-877047da554e','c13037bc-e466-439b-bc07-baae367c53f4','done','You said: word 2',NULL,NULL,1,10,5,20,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('b11154c0-79d5-4ab8-865d-c958ec8d6aaf','4b340490-94ce-4d26-9344-877047da554e','c13037bc-e466-439b-bc07-baae367c53f4','done','You said: word 3',NULL,NULL,1,10,5,20,1767225600.0,1767225600.0);
INSERT INTO "turns" VALUES('fd5e2887-a1af-4d70-bd4e-312b78ab8f48','4b340490-94ce-4d26-9344-877047da554e','c13037bc-e466-439b-bc07-baae367c53f4','done','You said: after',NULL,NULL,1,10,5,20,1767225600.0,1767225600.0);
CREATE TABLE usage (
	id INTEGER NOT NULL, 
	at REAL NOT NULL, 
	agent_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	model TEXT NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cached_tokens INTEGER NOT NULL, 
	cache_write_tokens INTEGER NOT NULL, 
	reasoning_tokens INTEGER NOT NULL, 
	cost_micro_usd INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "usage" VALUES(1,1767225600.0,'69f31809-83e0-4ed6-8e99-e4ee829341ca','308a8a71-f192-40cd-999b-ac5d00a67b63','928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(2,1767225600.0,'69f31809-83e0-4ed6-8e99-e4ee829341ca','308a8a71-f192-40cd-999b-ac5d00a67b63','928c77df-f6a4-4fd8-bfc8-7a5bdac2018b','scripted','scripted-model',100,7,0,0,0,114);
INSERT INTO "usage" VALUES(3,1767225600.0,'69f31809-83e0-4ed6-8e99-e4ee829341ca','308a8a71-f192-40cd-999b-ac5d00a67b63','33107772-ace1-45c4-9126-4f5d5f40faa1','scripted','scripted-model',935,1,0,0,0,937);
INSERT INTO "usage" VALUES(4,1767225600.0,'69f31809-83e0-4ed6-8e99-e4ee829341ca','308a8a71-f192-40cd-999b-ac5d00a67b63','turn-once','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(5,1767225600.0,'c13037bc-e466-439b-bc07-baae367c53f4','4b340490-94ce-4d26-9344-877047da554e','ef7e6064-6b4c-449f-9912-5cfcd8c7fddb','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(6,1767225600.0,'c13037bc-e466-439b-bc07-baae367c53f4','4b340490-94ce-4d26-9344-877047da554e','71975664-dbdd-4ecc-9f55-40f0f633d890','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(7,1767225600.0,'c13037bc-e466-439b-bc07-baae367c53f4','4b340490-94ce-4d26-9344-877047da554e','d7c794be-b677-43ef-95e0-a84f8f06ccb9','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(8,1767225600.0,'c13037bc-e466-439b-bc07-baae367c53f4','4b340490-94ce-4d26-9344-877047da554e','b11154c0-79d5-4ab8-865d-c958ec8d6aaf','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(9,1767225600.0,'c13037bc-e466-439b-bc07-baae367c53f4','4b340490-94ce-4d26-9344-877047da554e','compaction:4b340490-94ce-4d26-9344-877047da554e','scripted','scripted-model',10,5,0,0,0,20);
INSERT INTO "usage" VALUES(10,1767225600.0,'c13037bc-e466-439b-bc07-baae367c53f4','4b340490-94ce-4d26-9344-877047da554e','fd5e2887-a1af-4d70-bd4e-312b78ab8f48','scripted','scripted-model',10,5,0,0,0,20);
CREATE INDEX ix_sessions_agent_id ON sessions (agent_id);
CREATE INDEX ix_turns_session_id ON turns (session_id);
CREATE INDEX ix_turns_state ON turns (state);
CREATE INDEX ix_tool_calls_session_id ON tool_calls (session_id);
CREATE INDEX usage_by_agent ON usage (agent_id, at);
CREATE INDEX usage_by_time ON usage (at);
CREATE INDEX job_state_due ON job (state, due);
COMMIT;
