"""Spark's settings in tests: many small plans, each run once."""

from __future__ import annotations

#: Options of a JVM that runs for a minute. Its compiler's best code, its checks of Spark's own classes, and threads
#: that collect garbage would take longer than they save.
JAVA = ("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
        "-Djdk.lang.Process.launchMechanism=VFORK")

#: The settings of every session.
SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.shuffle.partitions": "2",
    # Compiling plans, and thinking them over between stages, would take longer than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # The default one starts programs, `chmod` and `readlink`, for each file: a hundred for a micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
