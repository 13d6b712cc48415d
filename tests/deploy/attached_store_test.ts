import { attachedStore } from "../../src/deploy/attached_store.ts";
import { isHosted } from "../../src/deploy/host.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const envOf = (variables: Record<string, string>) => ({ env: (name: string) => variables[name] });

Deno.test("isHosted() is decided by the variables of the host", () => {
  assertEquals(
    [{}, { DENO_AUTO_SERVE: "" }, { DENO_AUTO_SERVE: "1" }, { DENO_DEPLOY: "1" }].map((one) =>
      isHosted(envOf(one).env)
    ),
    [false, false, true, true],
  );
});

Deno.test("attachedStore() is what store names, DATABASE_URL, the database of PGHOST, or auto", async () => {
  const url = "postgres://ada:x@db.example/app";
  const parts = { PGHOST: "db.example", PGUSER: "ada", PGPASSWORD: "x/@:", PGDATABASE: "app" };
  const all = { ...parts, PGPORT: "5433", PGSSLMODE: "require" };
  assertEquals([
    attachedStore({ store: "memory" }, envOf({ DATABASE_URL: url })),
    attachedStore({ store: "auto" }, envOf({ DATABASE_URL: url, ...parts })),
    attachedStore({ store: "auto" }, envOf(parts)),
    attachedStore({ store: "auto" }, envOf(all)),
    attachedStore({ store: "auto" }, envOf({})),
  ], [
    "memory",
    { kind: "postgres", url },
    { kind: "postgres", url: "postgres://ada:x%2F%40%3A@db.example/app" },
    { kind: "postgres", url: "postgres://ada:x%2F%40%3A@db.example:5433/app?sslmode=require" },
    "auto",
  ]);
  await assertRejects(
    async () => void await attachedStore({ store: "auto" }, envOf({ ...parts, PGPORT: "none" })),
    Error,
    "Cannot use PGHOST, PGPORT and PGDATABASE: must be",
  );
  await assertRejects(
    async () => void await attachedStore({ store: "auto" }, envOf({ DATABASE_URL: "mysql://ada:x@h/d" })),
    Error,
    "Cannot use DATABASE_URL: must be postgres://USER:PASSWORD@HOST/DATABASE",
  );
});
