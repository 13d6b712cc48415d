/**
 * The server where the address is not ours: `deno serve main.ts`, Deno Deploy. Settings come from variables and
 * `preamp.yaml`; without configured keys all but the open routes is 401 (http.md, Running).
 */
import { Redactor } from "../policy/redact.ts";
import { createPreamp, type Preamp } from "../server/mod.ts";
import { readArguments } from "./arguments.ts";
import { ownOptions } from "./backend.ts";
import { createLog } from "./log.ts";
import { readSettings } from "./settings.ts";
import { systemIo } from "./system_io.ts";

/** Milliseconds that runs get to come to rest when the process is told to stop; Deno Deploy gives 5 s for all. */
const GRACE_MS = 3_000;

/** Returns the server; its log is lines of JSON on stderr. */
export async function openEmbedded(): Promise<Preamp> {
  const io = systemIo();
  const settings = await readSettings(readArguments([], []), io);
  const redactor = new Redactor(settings.api_keys);
  const log = createLog("json", io.err, (text) => redactor.redactText(text));
  for (const message of settings.warnings) log.note("warning", "settings", { message });
  const preamp = createPreamp(ownOptions(settings, settings.api_keys, log));
  io.onStop(() =>
    void preamp.drain(GRACE_MS).finally(() => {
      log.flush();
      io.exit(0);
    })
  );
  return preamp;
}
