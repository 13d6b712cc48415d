/** Where what outlives a process is kept: beside the project, and in the user's home. */
import type { SourcesFile } from "../app/source_overrides.ts";
import { fileUrl } from "./file_url.ts";
import { locate } from "./files.ts";
import type { Io } from "./terminal/io.ts";

/** Returns `$PREAMP_HOME`, else `~/.preamp`, as a URL that ends in a slash; null where there is no home folder. */
export function homeOf({ env, cwd }: Pick<Io, "cwd" | "env">): URL | null {
  const named = env("PREAMP_HOME");
  if (named) return locate(`${named.replace(/\/+$/, "")}/`, cwd);
  const user = env("HOME") || env("USERPROFILE");
  return user ? new URL(".preamp/", fileUrl(`${user}/`)) : null;
}

/** The files of overrides that hold for a command, by who they are for. */
export interface SourceFiles {
  /** `.preamp/sources.yaml` of the folder it runs in. */
  project: SourcesFile;
  /** `$PREAMP_HOME/sources.yaml`; undefined where there is no home folder. */
  user: SourcesFile | undefined;
}

/** Returns the files of overrides. */
export function sourceFilesOf(io: Pick<Io, "cwd" | "env">): SourceFiles {
  const home = homeOf(io);
  return {
    project: { url: new URL(".preamp/sources.yaml", io.cwd), base_url: io.cwd },
    user: home ? { url: new URL("sources.yaml", home), base_url: home } : undefined,
  };
}
