-- The settings of agents have their home in the state.json of each; the table settings has
-- copies. An older claybot would change the copies alone, so it must refuse this file.
DELETE FROM settings WHERE body = '{}';
