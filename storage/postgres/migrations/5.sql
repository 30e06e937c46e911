-- The bytes of a file that a person sent; NULL in rows of earlier versions, which do not
-- count. An earlier member writes no value.
ALTER TABLE attachments ADD COLUMN sent BIGINT;
