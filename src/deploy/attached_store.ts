/** The database that a host attaches to a server, by its variables. */
import { UsageError } from "../settings/errors.ts";
import type { Environment } from "../settings/paths.ts";
import type { Settings } from "../settings/settings.ts";
import { parseStoreName } from "../store/open.ts";

/**
 * Returns the store of a server: what the settings name, else the database of `DATABASE_URL`, else that of
 * `PGHOST` and its like, else `auto`.
 *
 * @throws {UsageError} for a `DATABASE_URL` that is no URL of Postgres.
 */
export function attachedStore(
  { store }: Pick<Settings, "store">,
  { env }: Pick<Environment, "env">,
): Settings["store"] {
  if (store !== "auto") return store;
  const url = env("DATABASE_URL") || urlOfParts(env);
  if (url === null) return "auto";
  const name = parseStoreName(url);
  if (name?.kind === "postgres") return name;
  const variable = env("DATABASE_URL") ? "DATABASE_URL" : "PGHOST, PGPORT and PGDATABASE";
  throw new UsageError(`Cannot use ${variable}: must be postgres://USER:PASSWORD@HOST/DATABASE`);
}

/** Returns the URL of the database that Postgres' own variables name; null without `PGHOST`. */
function urlOfParts(env: Environment["env"]): string | null {
  const part = (name: string) => encodeURIComponent(env(name) ?? "");
  if (part("PGHOST") === "") return null;
  const user = part("PGUSER") && `${part("PGUSER")}:${part("PGPASSWORD")}@`;
  const port = part("PGPORT") && `:${part("PGPORT")}`;
  const mode = part("PGSSLMODE") && `?sslmode=${part("PGSSLMODE")}`;
  return `postgres://${user}${env("PGHOST")}${port}/${part("PGDATABASE")}${mode}`;
}
