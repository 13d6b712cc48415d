import { isHosted } from "../../src/cli/terminal/io.ts";
import { hostedStore } from "../../src/cli/deno_serve.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const envOf = (variables: Record<string, string>) => ({ env: (name: string) => variables[name] });

Deno.test("isHosted() is decided by the variables of the host", () => {
  assertEquals(
    [{}, { DENO_AUTO_SERVE: "" }, { DENO_AUTO_SERVE: "1" }, { DENO_DEPLOY: "1" }].map((one) =>
      isHosted(envOf(one))
    ),
    [false, false, true, true],
  );
});

Deno.test("hostedStore() is what store names, DATABASE_URL, the database of PGHOST, or memory", async () => {
  const url = "postgres://ada:x@db.example/app";
  const parts = { PGHOST: "db.example", PGUSER: "ada", PGPASSWORD: "x/@:", PGDATABASE: "app" };
  const all = { ...parts, PGPORT: "5433", PGSSLMODE: "require" };
  assertEquals([
    hostedStore({ store: "memory" }, envOf({ DATABASE_URL: url })),
    hostedStore({ store: "auto" }, envOf({ DATABASE_URL: url, ...parts })),
    hostedStore({ store: "auto" }, envOf(parts)),
    hostedStore({ store: "auto" }, envOf(all)),
    hostedStore({ store: "auto" }, envOf({})),
  ], [
    "memory",
    { kind: "postgres", url },
    { kind: "postgres", url: "postgres://ada:x%2F%40%3A@db.example/app" },
    { kind: "postgres", url: "postgres://ada:x%2F%40%3A@db.example:5433/app?sslmode=require" },
    "memory",
  ]);
  await assertRejects(
    async () => void await hostedStore({ store: "auto" }, envOf({ ...parts, PGPORT: "none" })),
    Error,
    "Cannot use PGHOST, PGPORT and PGDATABASE: must be",
  );
  await assertRejects(
    async () => void await hostedStore({ store: "auto" }, envOf({ DATABASE_URL: "mysql://ada:x@h/d" })),
    Error,
    "Cannot use DATABASE_URL: must be postgres://USER:PASSWORD@HOST/DATABASE",
  );
});
