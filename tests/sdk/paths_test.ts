import {
  baseName,
  isAbsolutePath,
  isWithinFolder,
  normalizePath,
  parentFolder,
} from "../../src/sdk/paths.ts";
import { assertEquals } from "../assert.ts";

Deno.test("isWithinFolder() compares whole parts of normalised paths", () => {
  const cases: [string, string, boolean][] = [
    ["/a/b", "/a/b", true],
    ["/a/b", "/a/b/c", true],
    ["/a/b/", "/a//b/./c", true],
    ["/a/b", "/a/bc", false],
    ["/a/b", "/a/b/../c", false],
    ["/", "/a", true],
  ];
  for (const [folder, path, expected] of cases) {
    assertEquals([folder, path, isWithinFolder(folder, path)], [folder, path, expected]);
  }
});

Deno.test("normalizePath() removes . and .. and never leaves the root", () => {
  assertEquals(["/a/./b/../c", "/../..", "//a//"].map(normalizePath), ["/a/c", "/", "/a"]);
  assertEquals(["/a/b", "/a", "/"].map(parentFolder), ["/a", "/", "/"]);
  assertEquals(["/a/b", "/"].map(baseName), ["b", ""]);
  assertEquals(["/a", "a", "./a", ""].map(isAbsolutePath), [true, false, false, false]);
});
