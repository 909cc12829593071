-- What somebody proposes by hand (verb `propose`): table, kind and parameters as JSON.
ALTER TABLE decision_request ADD COLUMN proposal VARCHAR;
