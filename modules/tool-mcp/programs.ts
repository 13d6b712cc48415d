/** The program of a local server: a command that the plan grants, or Deno with a package from npm. */
import type { GrantedPermissions, Permissions } from "preamp/base";
import type { ServerConfig } from "./config.ts";
import type { ServerProgram } from "./process_transport.ts";

/** Variables of this process that servers get: none is a secret. */
const PASSED_ON = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "DENO_DIR", "DENO_TLS_CA_STORE"];

/** Returns the program of a server. @throws when the plan does not grant it, or there is no Deno. */
export function programOf(
  name: string,
  { command, npm, args = [], permissions = {}, env, cwd }: ServerConfig,
  run: GrantedPermissions["run"],
): ServerProgram {
  const start = { env: { ...passedOn(), ...env }, ...(cwd === undefined ? {} : { cwd }) };
  if (command) {
    const [program = "", ...rest] = command;
    return { path: granted(name, program, run), args: rest, ...start };
  }
  const path = isDeno() ? Deno.execPath() : "deno";
  granted(name, "deno", run);
  const flags = ["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--node-modules-dir=none"];
  return { path, args: [...flags, ...flagsOf(permissions), `npm:${npm}`, ...args], ...start };
}

/** Returns the program of the grant: by its name in PATH, or by its path. */
function granted(name: string, program: string, run: GrantedPermissions["run"]): string {
  const entries = run === true ? [program] : run === false ? [] : run;
  const found = entries.find((entry) =>
    entry === program || entry.endsWith(`/${program}`) && !program.includes("/")
  );
  if (found !== undefined) return found;
  throw new Error(
    `the plan does not let server "${name}" start ${program}: permissions: { run: [${program}] }`,
  );
}

/** Returns whether this program is Deno itself; a compiled one is not. */
function isDeno(): boolean {
  return !Deno.build.standalone;
}

function flagsOf(permissions: Permissions): string[] {
  return Object.entries(permissions).flatMap(([kind, value]) => {
    if (value === true) return [`--allow-${kind}`];
    if (!Array.isArray(value) || value.length === 0) return [];
    return [`--allow-${kind}=${value.map((entry) => entry.replaceAll(",", ",,")).join(",")}`];
  });
}

function passedOn(): Record<string, string> {
  const env: Record<string, string> = { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" };
  for (const name of PASSED_ON) {
    try {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    } catch {
      // a sandbox may not read it
    }
  }
  return env;
}
