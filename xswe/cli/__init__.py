"""The command line: each verb is a public function, and what there is to say of it is read off that."""
