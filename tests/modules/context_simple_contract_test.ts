/** `context-simple` passes the suite that every context manager must pass. */
import { testContext } from "preamp/testing";
import * as contextSimple from "../../modules/context-simple/mod.ts";

testContext("context-simple", () => contextSimple);
