import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.StringJoiner;

/**
 * What a Java program does with Trino's driver, told line by line: a command and its arguments
 * between tabs come in; a result (labels, types, rows) or an error goes out, then a line with a dot.
 */
public class TrinoJdbc {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] given) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", given[1]);
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Connection connection = DriverManager.getConnection(given[0], properties)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                try {
                    run(connection, line.split("\t", -1));
                } catch (SQLException error) {
                    tell("error", error.getErrorCode(), error.getSQLState(), error.getMessage());
                }
                OUT.println(".");
            }
        }
    }

    private static void run(Connection connection, String[] words) throws Exception {
        DatabaseMetaData names = connection.getMetaData();
        switch (words[0]) {
            case "query" -> query(connection, words[1]);
            case "prepared" -> prepared(connection, words);
            case "described" -> described(connection, words[1]);
            case "cancel" -> cancel(connection, words[1]);
            case "catalogs" -> show(names.getCatalogs());
            case "schemas" -> show(names.getSchemas(words[1], "%"));
            case "tables" -> show(names.getTables(words[1], words[2], words[3], null));
            case "columns" -> show(names.getColumns(words[1], words[2], words[3], "%"));
            case "types" -> show(names.getTypeInfo());
            case "keys" -> show(names.getPrimaryKeys(words[1], words[2], words[3]));
            case "product" -> tell(names.getDatabaseProductName(), names.getDatabaseProductVersion());
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            if (statement.execute(sql)) {
                show(statement.getResultSet());
            } else {
                tell("updated", statement.getLargeUpdateCount());
            }
        }
    }

    /** Each argument is a kind, a colon and a value. */
    private static void prepared(Connection connection, String[] words) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(words[1])) {
            for (int at = 2; at < words.length; at++) {
                String[] value = words[at].split(":", 2);
                switch (value[0]) {
                    case "long" -> statement.setLong(at - 1, Long.parseLong(value[1]));
                    case "text" -> statement.setString(at - 1, value[1]);
                    case "date" -> statement.setDate(at - 1, java.sql.Date.valueOf(value[1]));
                    case "decimal" ->
                            statement.setBigDecimal(at - 1, new java.math.BigDecimal(value[1]));
                    case "null" -> statement.setNull(at - 1, java.sql.Types.VARCHAR);
                    default -> throw new IllegalArgumentException(words[at]);
                }
            }
            show(statement.executeQuery());
        }
    }

    private static void described(Connection connection, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            tell("parameters", statement.getParameterMetaData().getParameterCount());
            head(statement.getMetaData());
        }
    }

    private static void cancel(Connection connection, String sql) throws Exception {
        try (Statement statement = connection.createStatement()) {
            // The driver forgets a cancel that comes before the server's first answer.
            Thread canceller =
                    new Thread(
                            () -> {
                                try {
                                    while (!Thread.interrupted()) {
                                        Thread.sleep(1_000);
                                        statement.cancel();
                                    }
                                } catch (InterruptedException ended) {
                                    // the statement is over
                                } catch (SQLException error) {
                                    throw new IllegalStateException(error);
                                }
                            });
            canceller.start();
            try {
                show(statement.executeQuery(sql));
            } finally {
                canceller.interrupt();
                canceller.join();
            }
        }
    }

    private static void head(ResultSetMetaData columns) throws SQLException {
        StringJoiner labels = new StringJoiner("\t", "labels\t", "");
        StringJoiner types = new StringJoiner("\t", "types\t", "");
        for (int at = 1; at <= columns.getColumnCount(); at++) {
            labels.add(columns.getColumnLabel(at));
            types.add(columns.getColumnTypeName(at));
        }
        OUT.println(labels);
        OUT.println(types);
    }

    private static void show(ResultSet rows) throws SQLException {
        try (rows) {
            int count = rows.getMetaData().getColumnCount();
            head(rows.getMetaData());
            while (rows.next()) {
                Object[] values = new Object[count];
                for (int at = 0; at < count; at++) {
                    values[at] = rows.getObject(at + 1);
                }
                tell(values);
            }
        }
    }

    private static void tell(Object... values) {
        StringJoiner line = new StringJoiner("\t", "row\t", "");
        for (Object value : values) {
            String text = String.valueOf(value);
            line.add(text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n"));
        }
        OUT.println(line);
    }
}
