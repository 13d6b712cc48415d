/** The one server that all attacks are sent to, what is asked of it afterwards, and the modules beside it. */
import { hashKey } from "../../src/policy/api_keys.ts";
import { type FileServer, serveFiles } from "../support/loader.ts";
import type { EscapeKind } from "./escape_kinds.ts";
import { BYSTANDER_ENV } from "./escape_plans.ts";
import { type EscapeSite, openEscapeSite } from "./escape_site.ts";
import type { ProbeReport } from "./health_probe.ts";
import { type Json, ROOT, type ServerProgram, startServer } from "./program.ts";

const HOSTILE = `${ROOT}tests/fixtures/hostile/`;

/**
 * Seconds of one call of a tool or a hook, and of the start of a guest, which takes longer when eight start
 * at once. `LONG` is for attacks that must answer, or that another limit must end, also on a busy machine.
 */
const SHORT = { call_s: 1.5, load_s: 4 };
const LONG = { call_s: 30, load_s: 30 };
const MEMORY_MB = 128;

/** Keys of the API: one whose calls have little time, and one whose calls have much. */
const KEYS = { short: "pk_escape_short", long: "pk_escape_long" };

/** The server and what is around it. */
export interface EscapeServer extends AsyncDisposable {
  readonly site: EscapeSite;
  readonly modules: FileServer;
  readonly server: ServerProgram;
  /** Value of the innocent's variable. */
  readonly bystander_secret: string;
  /** Asks `/healthz` every so many milliseconds until the returned function is called. */
  probe(every_ms: number): Probe;
}

/** Ends the asking; resolves to what the answers took, and beside them those of an idle server. */
export type Probe = () => Promise<{ server: ProbeReport; idle: ProbeReport }>;

/** Starts everything. */
export async function startEscapeServer(): Promise<EscapeServer> {
  const site = await openEscapeSite();
  const files: Record<string, Uint8Array<ArrayBuffer>> = {};
  for await (const { name } of Deno.readDir(HOSTILE)) {
    if (name.endsWith(".ts")) files[`hostile/${name}`] = await Deno.readFile(HOSTILE + name);
  }
  const modules = serveFiles(files);
  const bystander_secret = `BYSTANDER-${crypto.randomUUID()}`;
  const config = `${site.home}/preamp.yaml`;
  await Deno.writeTextFile(config, JSON.stringify(policyOf(site, modules)));
  const server = await startServer(["--config", config], {
    cwd: site.scratch,
    env: {
      PREAMP_HOME: `${site.home}/preamp`,
      // collects garbage often, so that the heap is what is kept, and gives back what is freed: the C library
      // would hold up to 64 MB of it for each thread, after blocks as large as a log
      DENO_V8_FLAGS: "--heap-growing-percent=20",
      MALLOC_MMAP_THRESHOLD_: "131072",
      MALLOC_TRIM_THRESHOLD_: "131072",
      TMPDIR: site.writable,
      [site.secret_env]: site.secret,
      [BYSTANDER_ENV]: bystander_secret,
    },
  });
  const probes: Probe[] = [];
  return {
    site,
    modules,
    server,
    bystander_secret,
    probe(every_ms) {
      const probe = startProbe(every_ms, [`${server.url}/healthz`, server.pid], [site.open_url, Deno.pid]);
      probes.push(probe);
      return probe;
    },
    async [Symbol.asyncDispose]() {
      for (const probe of probes) await probe();
      await server[Symbol.asyncDispose]();
      await modules[Symbol.asyncDispose]();
      await site[Symbol.asyncDispose]();
    },
  };
}

/** Returns the used bytes of the server's heap. */
export async function heapBytes({ server }: EscapeServer): Promise<number> {
  const headers = { authorization: `Bearer ${KEYS.long}` };
  const response = await fetch(`${server.url}/metrics`, { headers });
  const value = /^preamp_heap_used_bytes (\S+)$/m.exec(await response.text())?.[1];
  if (value === undefined) throw new Error("The metrics have no heap");
  return Number(value);
}

/** Returns the key to attack with. */
export function keyFor({ seen }: EscapeKind): string {
  const needs_time = "answers" in seen || "doors" in seen && seen.doors === "open" ||
    "fails" in seen && !seen.fails.includes("tool_timeout");
  return needs_time ? KEYS.long : KEYS.short;
}

function policyOf(site: EscapeSite, modules: FileServer): Json {
  return {
    // not in memory: what the server keeps would count as what it leaks
    store: `sqlite:${site.home}/preamp.db`,
    rates: { requests_per_minute: 0, runs_per_minute: 0 },
    modules: { allow: [`${modules.url}hostile/`], private_hosts: [`127.0.0.1:${modules.port}`] },
    env: { allow: [BYSTANDER_ENV] },
    permissions: {
      max: {
        net: [new URL(site.open_url).host],
        read: [site.folder, site.writable],
        write: [site.writable],
      },
    },
    auth: {
      keys: Object.entries(KEYS).map(([name, key]) => ({ name, sha256: hashKey(key), policy: name })),
    },
    isolation: { memory_mb: MEMORY_MB },
    limits: { cleanup_timeout_s: SHORT.call_s },
    policies: { short: policyWith(SHORT), long: policyWith(LONG) },
  };
}

function policyWith({ call_s, load_s }: typeof SHORT): Json {
  return {
    // ends a flood of deltas: each of 100 characters is an entry of 400 bytes, and their text is kept as a
    // broken-off answer, which is in four entries
    limits: { tool_timeout_s: call_s, hook_timeout_s: call_s, max_log_bytes: 1.5 * 1024 * 1024 },
    isolation: { load_timeout_s: load_s },
  };
}

/** @param targets URLs, and who answers them. */
function startProbe(every_ms: number, ...targets: (readonly [url: string, pid: number])[]): Probe {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "-A", // Deno gives nothing below /proc for less
      new URL("health_probe.ts", import.meta.url).pathname,
      ...[every_ms, ...targets.flat()].map(String),
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let ended: ReturnType<Probe> | undefined;
  const end = async () => {
    await child.stdin.close();
    const { stdout } = await child.output();
    const [server, idle] = JSON.parse(new TextDecoder().decode(stdout)) as ProbeReport[];
    return { server: server!, idle: idle! };
  };
  return () => ended ??= end();
}
