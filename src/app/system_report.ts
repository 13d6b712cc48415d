/**
 * Describes this process and its host for operators: `preamp doctor` and `GET /v1/system`. Never contains a
 * value of a variable.
 */
import manifest from "../../deno.json" with { type: "json" };
import { PERMISSION_KINDS } from "../sdk/plan.ts";
import type { Readiness, SystemReport } from "./types.ts";

/** Facts that a report needs from outside. */
export interface SystemFacts {
  readonly store: SystemReport["store"];
  readonly tiers: Pick<Readiness, "isolation" | "bundler">;
  /** Names of credential variables. */
  readonly variables: readonly string[];
  env(name: string): string | undefined;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** Earliest plausible time in milliseconds since the epoch: a clock before it was never set. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** Bytes of available memory below which sandboxes may not start: one takes about 70 MB. */
const LOW_MEMORY_BYTES = 256 * 1024 * 1024;

/** Returns the report as of now. */
export function systemReport({ store, tiers, variables, env, now }: SystemFacts): SystemReport {
  const facts = {
    version: {
      preamp: manifest.version,
      deno: Deno.version.deno,
      v8: Deno.version.v8,
      target: Deno.build.target,
      compiled: Deno.build.standalone,
    },
    store,
    ...tiers,
    permissions: permissionsOfProcess(),
    variables: variables.map((name) => ({ name, set: (env(name) ?? "").trim() !== "" })),
    clock: new Date(now()).toISOString(),
    memory: memoryOfHost(),
  };
  const warnings = warningsOf(facts, now());
  return { ok: warnings.length === 0, warnings, ...facts };
}

function warningsOf(
  { store, isolation, bundler, memory }: Pick<SystemReport, "store" | "isolation" | "bundler" | "memory">,
  now_ms: number,
): string[] {
  const warnings: string[] = [];
  if (!store.ok) warnings.push(`The store does not answer: ${store.reason ?? "no reason"}`);
  if (store.kind === "memory") {
    warnings.push(
      "Runs and sessions end with the process: set store to a SQLite file or a Postgres database",
    );
  }
  if (isolation.process !== true) warnings.push(`Modules from URLs cannot run: ${isolation.process}`);
  if (isolation.limits !== undefined) warnings.push(`Sandboxes are limited less: ${isolation.limits}`);
  if (bundler !== true) warnings.push(`Modules from URLs cannot be bundled: ${bundler}`);
  if (now_ms < EARLIEST_MS) {
    warnings.push("The clock of this machine is wrong: timestamps and leases need it");
  }
  if (memory.available_bytes !== null && memory.available_bytes < LOW_MEMORY_BYTES) {
    warnings.push("Less than 256 MiB of memory is available: lower isolation.max_guests");
  }
  return warnings;
}

function permissionsOfProcess(): SystemReport["permissions"] {
  const answers = PERMISSION_KINDS.map((name) => {
    const { state, partial } = Deno.permissions.querySync({ name });
    return [name, state === "granted" ? partial ? "partial" : "granted" : "denied"];
  });
  return Object.fromEntries(answers) as SystemReport["permissions"]; // one entry for each name
}

function memoryOfHost(): SystemReport["memory"] {
  const { rss } = Deno.memoryUsage();
  try {
    const { total, available } = Deno.systemMemoryInfo();
    return { rss_bytes: rss, total_bytes: total, available_bytes: available };
  } catch {
    return { rss_bytes: rss, total_bytes: null, available_bytes: null }; // needs --allow-sys
  }
}
