"""Operations of the SQL store: plain functions of one transaction, one file a subject."""
